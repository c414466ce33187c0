"""The load's totals in each interval between two samples, for the comparison of two windows."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from collectors.model import MISSING, Histograms, HistogramScale, Step, Table
from collectors.tables.load.schema import LOAD
from engine.events import EventKind
from engine.results.histogram import SUB_BITS, UNIT_NS

_COUNTED = ("read_ios", "write_ios", "read_latency_ns", "write_latency_ns")
_SCALE = HistogramScale(UNIT_NS, SUB_BITS)
_NO_BUCKETS: NDArray[np.uint16] = np.zeros(0, np.uint16)
_NO_COUNTS: NDArray[np.uint64] = np.zeros(0, np.uint64)


@dataclass(frozen=True, slots=True, eq=False)
class LoadTick:
    """All targets of the load together over one interval; times are of CLOCK_MONOTONIC.

    An interval of length 0 is the first sample of a run, or the first after a gap: the time before it is unknown. An
    empty `run` is a sample without a load.
    """

    run: str
    start_ns: int
    end_ns: int
    epoch_before: int = 0
    epoch: int = 0
    """At the end of the interval; if the two differ, knobs were turned within it."""
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
