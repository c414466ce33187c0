"""The settled intervals of an epoch: those that only its knobs determine."""

from __future__ import annotations

from collections.abc import Sequence

from engine.events import Event
from tui.load.ticks import LoadTick

SECOND_NS = 1_000_000_000
SETTLE_NS = 100_000_000
"""Least time from a turn to the settled part of an epoch; the same in engine/aio/epoch.py and the native engine."""


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
