"""The axes of a chart: time in columns of equal length at fixed times, and values with range, ticks and labels."""

from __future__ import annotations

import math
import time

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.field import Unit
from tui.text.format import format_quantity

LABEL_WIDTH = 5
_MANTISSAS = {1.0: (4, 2), 1.5: (3,), 2.0: (4, 2), 3.0: (3,), 4.0: (4, 2), 5.0: (5,), 6.0: (3, 2), 8.0: (4, 2)}
"""Round axis limits, and the number of round parts of each."""
_ROOM = 1.3
"""The axis shrinks only if the values times this still fit, to avoid flicker."""
_ROWS_PER_TICK = 3
_LEAST_HIGH, _LOWEST_DECADE = 0.01, -4
"""What a linear axis ends at, at least, and the power of ten from which on a label has room: .0001."""
_NEAR = 0.001
"""Share of a value by which its label may differ, if it has no exact one."""
_MOST_DECADES = 6


class Axis(Struct, frozen=True):
    """A range of values, linear from 0 or logarithmic by decades, with ticks."""

    low: float
    high: float
    log: bool
    ticks: tuple[float, ...]

    def position(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Height of values between 0 at the low end and 1 at the high end, clipped; NaN stays NaN."""
        if self.log:
            floored = np.maximum(values, self.low)
            heights = np.log10(floored / self.low) / math.log10(self.high / self.low)
        else:
            heights = (values - self.low) / (self.high - self.low)
        # np.clip takes three times as long for the few values of a chart.
        return np.minimum(np.maximum(heights, 0.0), 1.0)


def linear_axis(largest: float, unit: Unit, rows: int, previous: Axis | None = None) -> Axis:
    """Choose an axis from 0 to a round number >= `largest`; percent always ends at 100 or above."""
    if largest > 0:
        largest = max(largest, _LEAST_HIGH)
    if unit is Unit.PERCENT:
        largest = max(largest, 100.0)
    high, parts = _round_up(largest, unit)
    if previous is not None and not previous.log and high < previous.high <= _round_up(largest * _ROOM, unit)[0]:
        high, parts = _round_up(previous.high, unit)
    intervals = next((count for count in parts if rows >= count * _ROWS_PER_TICK), 1)
    return Axis(0.0, high, False, tuple(high * i / intervals for i in range(intervals + 1)))


def log_axis(smallest: float, largest: float, rows: int, previous: Axis | None = None) -> Axis:
    """Choose an axis of whole decades for the positive values from `smallest` to `largest`, from 0.0001 on."""
    top = max(math.ceil(math.log10(largest) - 1e-9), _LOWEST_DECADE + 1)
    bottom = max(math.floor(math.log10(smallest) + 1e-9), top - _MOST_DECADES, _LOWEST_DECADE)
    if previous is not None and previous.log:
        top = max(top, min(round(math.log10(previous.high)), top + 1))
        bottom = min(bottom, max(round(math.log10(previous.low)), bottom - 1))
    bottom = min(bottom, top - 1)
    step = max(1, math.ceil((top - bottom) * 2 / max(1, rows)))
    return Axis(10.0**bottom, 10.0**top, True, tuple(10.0**power for power in range(bottom, top + 1, step)))


def tick_label(value: float, unit: Unit) -> str:
    """Label of a tick in at most LABEL_WIDTH cells, without trailing zeros; for a round value it is exact."""
    if 10.0**_LOWEST_DECADE <= value < 1:
        texts = [f"{value:.{decimals}f}" for decimals in range(1, 1 - _LOWEST_DECADE)]
        near = next((text for text in texts if abs(float(text) - value) <= _NEAR * value), texts[-1])
        return near if len(near) <= LABEL_WIDTH else near.removeprefix("0")
    text = format_quantity(value, unit, LABEL_WIDTH)
    number = text.rstrip("kKMGTPEshd")
    if "." not in number or "<" in number:
        return text
    return number.rstrip("0").rstrip(".") + text[len(number) :]


def _round_up(value: float, unit: Unit) -> tuple[float, tuple[int, ...]]:
    """Find the next round number, and its number of round parts."""
    if not 0 < value < math.inf:
        return 1.0, _MANTISSAS[1.0]
    binary = unit in (Unit.BYTES, Unit.BYTES_PER_SECOND)
    scale = 1024.0 ** max(0, math.floor(math.log(value, 1024) + 1e-12)) if binary else 1.0
    scaled = value / scale
    if binary and 800 < scaled <= 1024:
        return 1024 * scale, _MANTISSAS[1.0]
    power = 10.0 ** math.floor(math.log10(scaled) + 1e-12)
    for mantissa, parts in _MANTISSAS.items():
        if scaled <= mantissa * power * (1 + 1e-12):
            return mantissa * power * scale, parts
    return 10.0 * power * scale, _MANTISSAS[1.0]


_SECOND = 1_000_000_000
CLOCK_STEPS_S = (
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200,
    86_400, 172_800, 604_800, 2_592_000, 31_536_000,
)  # fmt: skip
"""Round intervals between clock labels."""


class TimeScale(Struct, frozen=True):
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


def scale_to(first_ns: int, last_ns: int, columns: int, previous: TimeScale | None, *, per_cell: int = 1) -> TimeScale:
    """Choose columns for a range; the width of the previous scale is kept while it fits within 10 %.

    The scale begins at a multiple of `per_cell` columns: a picture moves by whole cells, which the terminal shifts.
    """
    needed = max(1, -(-(last_ns - first_ns + 1) // max(1, columns - per_cell)))
    column_ns = math.ceil(needed * 1.02)
    if previous is not None and previous.columns == columns and needed <= previous.column_ns <= needed * 1.1:
        column_ns = previous.column_ns
    last_column = last_ns // column_ns // per_cell * per_cell + per_cell - 1
    return TimeScale((last_column - columns + 1) * column_ns, column_ns, columns)


def envelope(
    times_ns: NDArray[np.int64], values: NDArray[np.float64], scale: TimeScale
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Smallest and largest value of the line through the points in each column, NaN where there is none.

    Peaks are kept however many points share a column. The line breaks at NaN, and times must not decrease.
    """
    low, high = np.full((2, scale.columns), np.nan)
    elapsed = times_ns - scale.start_ns
    first, end = np.searchsorted(elapsed, (0, scale.column_ns * scale.columns))
    if first < end:
        column = elapsed[first:end] // scale.column_ns
        starts = np.concatenate(([0], np.flatnonzero(column[1:] != column[:-1]) + 1))
        filled = column[starts]
        low[filled] = np.fmin.reduceat(values[first:end], starts)
        high[filled] = np.fmax.reduceat(values[first:end], starts)
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
    step_s = next((step for step in CLOCK_STEPS_S if span_s / step <= most), CLOCK_STEPS_S[-1])
    form = "%H:%M:%S" if step_s < 60 else "%H:%M" if step_s < 86_400 else "%m-%d"
    offset_s = time.localtime(start_ns / _SECOND).tm_gmtoff
    first_s = math.ceil((start_ns / _SECOND + offset_s) / step_s) * step_s - offset_s
    moments = range(first_s, math.ceil(end_ns / _SECOND), step_s)
    return [(moment * _SECOND, time.strftime(form, time.localtime(moment))) for moment in moments]
