"""What the last turn of a knob did: the intervals before it against those after it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.events import Event, EventKind
from tui.history.charts import Series

COMPARED_INTERVALS = 10
"""Most intervals taken on each side of a turn."""


@dataclass(frozen=True, slots=True)
class Level:
    """What the load did over some intervals; NaN where nothing was measured."""

    intervals: int
    iops: float
    mean_ms: float
    p99_ms: float
    """The worst p99 of any one interval: percentiles of intervals cannot be averaged."""
    max_ms: float


@dataclass(frozen=True, slots=True)
class Effect:
    """Before and after the last turn; `time_ns` is None before the first.

    Turns in such quick succession that no whole interval lies between them count as one.
    """

    text: str
    time_ns: int | None
    before: Level
    after: Level


def change_pct(before: float, after: float) -> float:
    """Change in percent; NaN without a base."""
    return (after / before - 1) * 100 if before > 0 and math.isfinite(before) else math.nan


def last_effect(series: Series | None, events: Sequence[Event]) -> Effect:
    """Compare around the newest turn that the series reaches back to.

    The interval in which a knob was turned belongs to neither side.
    """
    if series is None or len(series) < 2:
        nothing = _level(series, np.zeros(0, np.intp))
        return Effect("", None, nothing, nothing)
    newest_ns = int(series.times_ns[-1])
    turns = [event for event in events if event.kind is EventKind.KNOB and event.time_ns <= newest_ns]
    if not turns:
        return Effect("", None, _level(series, np.zeros(0, np.intp)), _between(series, 0, newest_ns))
    first, before = _first_of_burst(series, turns)
    after = _between(series, turns[-1].time_ns, newest_ns)
    return Effect(_words(turns[first:]), turns[-1].time_ns, before, after)


def _first_of_burst(series: Series, turns: Sequence[Event]) -> tuple[int, Level]:
    """Position of the oldest turn since which no whole interval passed before the newest, and the level before it."""
    for position in range(len(turns) - 1, -1, -1):
        since_ns = turns[position - 1].time_ns if position else 0
        before = _between(series, since_ns, turns[position].time_ns)
        if before.intervals or not position or since_ns < series.times_ns[0]:
            return position, before
    raise AssertionError("there is a turn")


def _words(burst: Sequence[Event]) -> str:
    """One knob turned several times reads as one turn."""
    last = burst[-1]
    if len(burst) == 1:
        return last.text
    knob, begin, end = last.data.get("knob"), burst[0].data.get("from"), last.data.get("to")
    if knob is None or any(event.data.get("knob") != knob for event in burst):
        return f"{last.text} and {len(burst) - 1} more"
    return f"{str(knob).replace('_', ' ')} {begin} -> {end}"


def _between(series: Series, begin_ns: int, end_ns: int) -> Level:
    """Level of the last whole intervals within a stretch of time."""
    ends, starts = series.times_ns[1:], series.times_ns[:-1]
    chosen = np.flatnonzero((starts >= begin_ns) & (ends <= end_ns)) + 1
    return _level(series, chosen[-COMPARED_INTERVALS:])


def _level(series: Series | None, chosen: NDArray[np.intp]) -> Level:
    if series is None or not len(chosen):
        return Level(0, math.nan, math.nan, math.nan, math.nan)
    iops, latency = series.values["iops"][chosen], series.values["await_ms"][chosen]
    measured = np.isfinite(iops)
    if not measured.any():
        return Level(0, math.nan, math.nan, math.nan, math.nan)
    weighted = measured & np.isfinite(latency) & (iops > 0)
    mean = float(np.average(latency[weighted], weights=iops[weighted])) if weighted.any() else math.nan
    return Level(
        int(measured.sum()),
        float(iops[measured].mean()),
        mean,
        _largest(series.values["p99_ms"][chosen]),
        _largest(series.values["max_ms"][chosen]),
    )


def _largest(values: NDArray[np.float64]) -> float:
    known = values[np.isfinite(values)]
    return float(known.max()) if known.size else math.nan
