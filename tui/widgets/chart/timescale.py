"""The time axis of a chart: columns of equal length at fixed times, and the range of a curve in each column."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_SECOND = 1_000_000_000
_STEPS_S = (
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200,
    86_400, 172_800, 604_800, 2_592_000, 31_536_000,
)  # fmt: skip
"""Round intervals between clock labels."""


@dataclass(frozen=True, slots=True)
class TimeScale:
    """Columns of `column_ns` each, the first beginning at `start_ns`, a multiple of `column_ns`.

    Columns begin at fixed times, so that a curve moves by whole columns and keeps its shape.
    """

    start_ns: int
    column_ns: int
    columns: int

    def column_of(self, time_ns: int) -> int:
        """Column of a time; it may be outside the scale."""
        return (time_ns - self.start_ns) // self.column_ns

    @property
    def end_ns(self) -> int:
        """End of the last column."""
        return self.start_ns + self.column_ns * self.columns


def scale_to(first_ns: int, last_ns: int, columns: int, previous: TimeScale | None) -> TimeScale:
    """Choose columns for a range; the width of the previous scale is kept while it fits within 10 %."""
    needed = max(1, -(-(last_ns - first_ns + 1) // max(1, columns - 1)))
    column_ns = math.ceil(needed * 1.02)
    if previous is not None and previous.columns == columns and needed <= previous.column_ns <= needed * 1.1:
        column_ns = previous.column_ns
    last_column = last_ns // column_ns
    return TimeScale((last_column - columns + 1) * column_ns, column_ns, columns)


def envelope(
    times_ns: NDArray[np.int64], values: NDArray[np.float64], scale: TimeScale
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Smallest and largest value of the line through the points in each column, NaN where there is none.

    Peaks are kept however many points share a column. The line breaks at NaN, and times must not decrease.
    """
    low = np.full(scale.columns, np.nan)
    elapsed = (times_ns - scale.start_ns).astype(np.float64)
    inside = (elapsed >= 0) & (elapsed < scale.column_ns * scale.columns)
    if inside.any():
        column = (elapsed[inside] // scale.column_ns).astype(np.intp)
        starts = np.concatenate(([0], np.flatnonzero(np.diff(column)) + 1))
        low[column[starts]] = np.fmin.reduceat(values[inside], starts)
        high = low.copy()
        high[column[starts]] = np.fmax.reduceat(values[inside], starts)
    else:
        high = low.copy()
    if len(times_ns):
        edges = np.arange(scale.columns + 1, dtype=np.float64) * scale.column_ns
        line = np.interp(edges, elapsed, values, left=np.nan, right=np.nan)
        low = np.fmin(np.fmin(low, line[:-1]), line[1:])
        high = np.fmax(np.fmax(high, line[:-1]), line[1:])
    return low, high


def clock_ticks(start_ns: int, end_ns: int, most: int) -> list[tuple[int, str]]:
    """Round local times with their labels, at most `most` of them."""
    span_s = (end_ns - start_ns) / _SECOND
    if most < 1 or span_s <= 0:
        return []
    step_s = next((step for step in _STEPS_S if span_s / step <= most), _STEPS_S[-1])
    form = "%H:%M:%S" if step_s < 60 else "%H:%M" if step_s < 86_400 else "%m-%d"
    offset_s = time.localtime(start_ns / _SECOND).tm_gmtoff
    first_s = math.ceil((start_ns / _SECOND + offset_s) / step_s) * step_s - offset_s
    moments = range(first_s, math.ceil(end_ns / _SECOND), step_s)
    return [(moment * _SECOND, time.strftime(form, time.localtime(moment))) for moment in moments]
