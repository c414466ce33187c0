"""What the last turn of a knob did: the intervals before it against those after it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.events import Event, EventKind
from tui.history import Series

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
    """Before and after the last turn; `turn` is None before the first."""

    turn: Event | None
    before: Level
    after: Level


def change_pct(before: float, after: float) -> float:
    """Change in percent; NaN without a base."""
    return (after / before - 1) * 100 if before > 0 and math.isfinite(before) else math.nan


def last_effect(series: Series | None, events: list[Event]) -> Effect:
    """Compare around the newest knob event that the series reaches back to.

    The interval in which the knob was turned belongs to neither side.
    """
    none = _level(series, np.zeros(0, np.intp))
    if series is None or len(series) < 2:
        return Effect(None, none, none)
    turns = [event for event in events if event.kind is EventKind.KNOB and event.time_ns <= series.times_ns[-1]]
    if not turns:
        return Effect(None, none, _level(series, np.arange(1, len(series))[-COMPARED_INTERVALS:]))
    turn_ns = turns[-1].time_ns
    earlier_ns = turns[-2].time_ns if len(turns) > 1 else 0
    ends, starts = series.times_ns[1:], series.times_ns[:-1]
    after = np.flatnonzero(starts >= turn_ns) + 1
    before = np.flatnonzero((ends <= turn_ns) & (starts >= earlier_ns)) + 1
    return Effect(turns[-1], _level(series, before[-COMPARED_INTERVALS:]), _level(series, after[-COMPARED_INTERVALS:]))


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
