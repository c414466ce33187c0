"""The load's totals in each interval between two samples, and which of these only the knobs of an epoch determine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from collectors.model import MISSING, Histograms, HistogramScale, Step, Table
from collectors.tables.load.schema import LOAD
from engine.events import Event, EventKind
from engine.results.histogram import SUB_BITS, UNIT_NS

_COUNTED = ("read_ios", "write_ios", "read_latency_ns", "write_latency_ns")
_SCALE = HistogramScale(UNIT_NS, SUB_BITS)
_NO_BUCKETS: NDArray[np.uint16] = np.zeros(0, np.uint16)
_NO_COUNTS: NDArray[np.uint64] = np.zeros(0, np.uint64)


class LoadTick(Struct, frozen=True, eq=False):
    """All targets of the load together over one interval; times are of CLOCK_MONOTONIC.

    An interval of length 0 is the first sample of a run, or the first after a gap: the time before it is unknown. An
    empty `run` is a sample without a load.
    """

    run: str
    start_ns: int
    end_ns: int
    epoch_before: int = 0
    epoch: int = 0
    """Epoch at the end of the interval; if the two differ, knobs were turned within it."""
    ios: int = 0
    latency_ns: int = 0
    """Sum over all I/Os that completed."""
    peak_ns: int = 0
    is_last: bool = False
    """Whether the load ended within the interval."""
    scale: HistogramScale = _SCALE
    bucket: NDArray[np.uint16] = field(default_factory=lambda: _NO_BUCKETS)
    count: NDArray[np.uint64] = field(default_factory=lambda: _NO_COUNTS)
    """I/Os by bucket, shape of `bucket`."""

    @property
    def length_ns(self) -> int:
        """Length of the interval."""
        return self.end_ns - self.start_ns


def tick_of(step: Step) -> LoadTick:
    """Totals of the load in a step of a source, live or recorded."""
    now_ns = step.current.monotonic_ns
    table = step.current.tables.get(LOAD.name)
    if table is None or not len(table.rows):
        return LoadTick("", now_ns if step.previous is None else step.previous.monotonic_ns, now_ns)
    run, epoch = table.rows.keys[0], _epoch(table)
    previous = None if step.previous is None else step.previous.tables.get(LOAD.name)
    grown = None if previous is None else _growth(previous, table)
    if step.previous is None or previous is None or grown is None or step.previous.monotonic_ns >= now_ns:
        return LoadTick(run, now_ns, now_ns, epoch, epoch)
    scale, bucket, count = _cells(step.current.histograms.get(LOAD.name))
    return LoadTick(
        run,
        step.previous.monotonic_ns,
        now_ns,
        _epoch(previous),
        epoch,
        ios=grown[0] + grown[1],
        latency_ns=grown[2] + grown[3],
        peak_ns=_peak_ns(table),
        is_last=any(event.kind is EventKind.LOAD and "ended" in event.data for event in step.current.events),
        scale=scale,
        bucket=bucket,
        count=count,
    )


def _epoch(table: Table) -> int:
    epochs = table.column("epoch")
    known = epochs[epochs != MISSING]
    return int(known.max()) if len(known) else 0


def _growth(previous: Table, current: Table) -> list[int] | None:
    """Add up all targets; None for another run, or if a counter is missing or decreased."""
    if previous.rows.keys != current.rows.keys:
        return None
    grown = []
    for column in _COUNTED:
        before, after = previous.column(column), current.column(column)
        if (before == MISSING).any() or (after == MISSING).any() or (after < before).any():
            return None
        grown.append(int((after - before).sum()))
    return grown


def _peak_ns(table: Table) -> int:
    peaks = np.concatenate((table.column("read_peak_ns"), table.column("write_peak_ns")))
    return int(np.where(peaks == MISSING, 0, peaks).max(initial=0))


def _cells(cells: Histograms | None) -> tuple[HistogramScale, NDArray[np.uint16], NDArray[np.uint64]]:
    if cells is None or not len(cells.bucket):
        return (_SCALE if cells is None else cells.scale), _NO_BUCKETS, _NO_COUNTS
    bucket, index = np.unique(cells.bucket, return_inverse=True)
    count = np.zeros(len(bucket), np.uint64)
    np.add.at(count, index, cells.count)
    return cells.scale, bucket, count


SECOND_NS = 1_000_000_000
SETTLE_NS = 100_000_000
"""Least time from a turn to the settled part of an epoch; the same in engine/aio/stats.py and the native engine."""


def opened_at(mine: Sequence[LoadTick], epoch: int, turns: Sequence[Event]) -> int | None:
    """CLOCK_MONOTONIC at which an epoch was opened, or later; None if unknown.

    Args:
        mine: intervals of one run by time.
        epoch: its number.
        turns: events of turns, for the exact time; without one it is the first sample of the epoch.
    """
    moments = [event.monotonic_ns for event in turns if event.data.get("epoch") == epoch]
    opening = next((tick for tick in mine if tick.epoch_before < epoch <= tick.epoch), None)
    if opening is not None:
        known = [moment for moment in moments if opening.start_ns <= moment <= opening.end_ns + SECOND_NS]
        return known[-1] if known else opening.end_ns
    first = next((tick for tick in mine if tick.epoch == epoch), None)
    if first is None:
        return None
    if not epoch:
        return None if first.length_ns else first.start_ns
    return max((moment for moment in moments if moment <= first.end_ns), default=None)


def settled_ticks(mine: Sequence[LoadTick], epoch: int, opened_ns: int | None) -> list[LoadTick]:
    """Choose the intervals of an epoch in which no I/O of an earlier one completed.

    An I/O with a latency above the time from the turn to the end of its interval was issued before the turn; one above
    the time to the start of its interval may have been. All intervals up to the last such one are excluded. An epoch
    without a known start counts as settled.
    """
    own = [tick for tick in mine if tick.epoch_before == tick.epoch == epoch and tick.length_ns]
    settled_ns = 0 if opened_ns is None else _settled_ns(own, opened_ns)
    return [tick for tick in own if tick.start_ns >= settled_ns]


def unbroken_start(ticks: Sequence[LoadTick]) -> Sequence[LoadTick]:
    """Keep the intervals before the first gap."""
    for position in range(1, len(ticks)):
        if ticks[position].start_ns != ticks[position - 1].end_ns:
            return ticks[:position]
    return ticks


def unbroken_end(ticks: Sequence[LoadTick]) -> Sequence[LoadTick]:
    """Keep the intervals after the last gap."""
    for position in range(len(ticks) - 1, 0, -1):
        if ticks[position].start_ns != ticks[position - 1].end_ns:
            return ticks[position:]
    return ticks


def _settled_ns(own: Sequence[LoadTick], opened_ns: int) -> int:
    settled_ns = opened_ns + SETTLE_NS
    for tick in own:
        if tick.ios and tick.peak_ns > tick.start_ns - opened_ns:
            settled_ns = max(settled_ns, tick.end_ns)
    waiting = [tick for tick in own if tick.start_ns >= settled_ns]
    # A turn that changes the page cache waits until it is written back; the load then starts within an interval.
    for position, tick in enumerate(waiting):
        if tick.ios:
            return tick.end_ns if position else settled_ns
    return waiting[-1].end_ns if waiting else settled_ns
