"""The data of a heat map, its latency axis, and the picture at a size."""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.derive.percentiles import bucket_bounds_ns
from collectors.latency.heat_map import HeatColumns, LatencyRange, heat_columns, heat_rows
from collectors.latency.summary import buckets_of
from collectors.latency.ticks import LatencyTicks
from engine.events import Event
from tui.widgets.chart.axes import TimeScale, scale_to
from tui.widgets.chart.model import ChartFrame

_ROUND = (1.0, 2.0, 5.0, 10.0)
_LEAST_RATIO = 10.0
_SLACK = 5.5
"""Factor by which the limits may be too wide before the axis shrinks; about two round numbers."""
_NARROWEST = 1.2
"""Smallest range: below it a row would be finer than any histogram bucket."""
_HIGHEST_NS = 1e12
"""Centre of the highest range: longer than any timeout."""
_ROWS_FOR_ALL = 7.0
"""Rows per decade from which on 2 and 5 get labels too."""
_ROWS_FOR_TENS = 2.0


def fitted_range(smallest_ns: float, largest_ns: float, previous: LatencyRange | None) -> LatencyRange:
    """Choose round limits for the latencies; the previous ones are kept while they fit and are not too wide."""
    low, high = _round_down(max(smallest_ns, 1.0)), _round_up(largest_ns)
    high = max(high, low * _LEAST_RATIO)
    if previous is not None and _holds(previous, low, high) and not _is_loose(previous, low, high):
        return previous
    return LatencyRange(low, high)


def zoomed_range(present: LatencyRange, centre_ns: float | None, factor: float) -> LatencyRange:
    """Narrow (factor below 1) or widen a range by its ratio, around a latency or its middle."""
    ratio = max((present.high_ns / present.low_ns) ** factor, _NARROWEST)
    centre = math.sqrt(present.low_ns * present.high_ns)
    if centre_ns is not None and 0 < centre_ns < math.inf:  # The last bucket of a histogram has no upper bound.
        centre = min(centre_ns, _HIGHEST_NS)
    low = max(centre / math.sqrt(ratio), 1.0)
    return LatencyRange(low, low * ratio)


def label_values_ns(present: LatencyRange, rows: int) -> list[float]:
    """Latencies to label: decades, with room also 2 and 5, and if no round one is visible both ends."""
    per_ten = rows / math.log10(present.high_ns / present.low_ns)
    mantissas = _ROUND[:3] if per_ten >= _ROWS_FOR_ALL else _ROUND[:1] if per_ten >= _ROWS_FOR_TENS else ()
    first, last = math.floor(math.log10(present.low_ns)), math.ceil(math.log10(present.high_ns))
    values = [mantissa * 10.0**power for power in range(first, last + 1) for mantissa in mantissas]
    inside = [value for value in values if present.low_ns * 0.999 <= value <= present.high_ns * 1.001]
    return inside if len(inside) > 1 else [present.low_ns, present.high_ns]


def round_up_count(count: float) -> float:
    """Round up to 1, 2, 5, 10, ...: the end of a colour scale, so that it seldom changes."""
    return _round_up(count)


def _holds(present: LatencyRange, low: float, high: float) -> bool:
    return present.low_ns <= low * 1.001 and present.high_ns >= high * 0.999


def _is_loose(present: LatencyRange, low: float, high: float) -> bool:
    return present.high_ns > high * _SLACK or present.low_ns < low / _SLACK


def _round_down(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value) + 1e-9)
    return max(mantissa for mantissa in _ROUND if mantissa * power <= value * (1 + 1e-9)) * power


def _round_up(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(max(value, 1.0)) + 1e-9)
    return min(mantissa for mantissa in _ROUND if mantissa * power >= value * (1 - 1e-9)) * power


SECOND_NS = 1_000_000_000
SHORTEST_NS = 5 * SECOND_NS


class TimeWindow:
    """Time window that follows the newest data until it is fixed."""

    def __init__(self) -> None:
        self.newest_ns = 0
        self._whole_ns = SHORTEST_NS
        self._span_ns: int | None = None
        self._end_ns: int | None = None

    @property
    def is_fixed(self) -> bool:
        """Whether the window is fixed."""
        return self._end_ns is not None

    def follow(self, newest_ns: int, whole_ns: int) -> None:
        """Take the newest time and the available range; a zoomed window is unchanged."""
        self.newest_ns, self._whole_ns = newest_ns, whole_ns
        if self._span_ns is not None and self._span_ns >= whole_ns:
            self._span_ns = None
        if self._end_ns is not None and self._end_ns > newest_ns:
            self._end_ns = None

    def bounds(self) -> tuple[int, int]:
        """Begin and end of the window."""
        end_ns = self.newest_ns if self._end_ns is None else self._end_ns
        return end_ns - self._length_ns, end_ns

    def zoom(self, factor: float, around_ns: int | None) -> None:
        """Scale the window by `factor` around a time; without one its end is kept."""
        wanted = max(round(self._length_ns * factor), SHORTEST_NS)
        self._span_ns = wanted if wanted < self._whole_ns else None
        if self._span_ns is None:
            self._end_ns = None
        if around_ns is not None:
            self._fix(around_ns + self._length_ns // 2)
            self.reach(around_ns)

    def reach(self, time_ns: int) -> None:
        """Scroll as little as needed to show a time, with a margin."""
        start_ns, end_ns = self.bounds()
        if not start_ns < time_ns <= end_ns:
            self._fix(time_ns + self._length_ns // 2)

    def reset(self) -> None:
        """Show all, up to the newest."""
        self._span_ns = self._end_ns = None

    @property
    def _length_ns(self) -> int:
        return self._whole_ns if self._span_ns is None else self._span_ns

    def _fix(self, end_ns: int) -> None:
        self._end_ns = end_ns if end_ns < self.newest_ns else None


LEVELS = 8
"""Density levels besides none."""
_TOUCHING = 0.05
"""Share of its length by which an interval may begin late and still join the previous one: clocks differ a little."""


class HeatData(Struct, frozen=True, eq=False):
    """Intervals of one subject, the series to count, and the time range to show."""

    ticks: LatencyTicks
    series: tuple[str, ...]
    events: tuple[Event, ...]
    start_ns: int
    end_ns: int


class HeatPicture(Struct, frozen=True, eq=False):
    """One picture: `levels` has shape (rows, cells), row 0 on top; `column_of_cell` is -1 where nothing is known."""

    data: HeatData
    """What it was drawn from, and the range of latencies that was chosen, if any."""
    zoomed: LatencyRange | None
    frame: ChartFrame
    time: TimeScale
    span: LatencyRange
    columns: HeatColumns
    column_of_cell: NDArray[np.int64]
    levels: NDArray[np.int8]
    fullest: float
    """I/Os in a cell of the highest level."""

    def column_at(self, time_ns: int) -> int | None:
        """Column of a time; the last if the time is later."""
        last = len(self.columns) - 1
        return min(int(np.searchsorted(self.columns.ends_ns, time_ns)), last) if last >= 0 else None

    def cells_of(self, column: int) -> NDArray[np.intp]:
        """Cells that a column covers."""
        return np.flatnonzero(self.column_of_cell == column)

    def least_of(self, level: int) -> float:
        """Least I/Os in a cell of a level."""
        return float(self.fullest ** ((level - 1) / LEVELS))


def draw_picture(
    data: HeatData, frame: ChartFrame, previous: HeatPicture | None, zoomed: LatencyRange | None
) -> HeatPicture:
    """Bin the visible intervals; scales change no more than needed."""
    before = None if previous is None else previous.time
    time = scale_to(data.start_ns, data.end_ns, max(frame.cells, 1), before)
    ticks = data.ticks.between(time.start_ns, data.end_ns)
    span = zoomed or _range_of(ticks, data.series, None if previous is None else previous.span)
    wanted_column = (ticks.times_ns - time.start_ns) // time.column_ns
    columns = heat_columns(ticks, data.series, wanted_column, heat_rows(ticks.scale, span, max(frame.rows, 1)))
    column_of_cell = _spread(ticks, wanted_column, time)
    levels, fullest = _levels(columns)
    shown = np.concatenate((levels, np.zeros((1, levels.shape[1]), np.int8)))[column_of_cell]
    return HeatPicture(data, zoomed, frame, time, span, columns, column_of_cell, shown.T[::-1], fullest)


def _range_of(ticks: LatencyTicks, series: tuple[str, ...], previous: LatencyRange | None) -> LatencyRange:
    buckets = buckets_of(ticks, series)
    if not len(buckets):
        return previous or LatencyRange(1e4, 1e8)
    low, above = bucket_bounds_ns(ticks.scale, np.array([buckets.min(), buckets.max()], np.uint16))
    return fitted_range(float(low[0]), float(above[1]), previous)


def _spread(ticks: LatencyTicks, wanted_column: NDArray[np.int64], time: TimeScale) -> NDArray[np.int64]:
    """Column of each cell; an interval longer than a cell covers its whole length, and gaps are kept."""
    column_of_cell = np.full(time.columns, -1, np.int64)
    if not len(ticks):
        return column_of_cell
    column = np.cumsum(np.concatenate(([0], np.diff(wanted_column) != 0)), dtype=np.int64)
    begun_ns = ticks.times_ns - (ticks.spans_ns * (1 + _TOUCHING)).astype(np.int64)
    first = (begun_ns - time.start_ns) // time.column_ns + 1
    first[1:] = np.maximum(first[1:], wanted_column[:-1] + 1)
    first = np.clip(first, 0, wanted_column)
    length = wanted_column - first + 1
    cell = np.repeat(wanted_column - np.cumsum(length) + 1, length) + np.arange(int(length.sum()))
    column_of_cell[cell] = np.repeat(column, length)
    return column_of_cell


def _levels(columns: HeatColumns) -> tuple[NDArray[np.int8], float]:
    """Density level of the cells by column, logarithmic in their I/Os, and the I/Os of the highest level.

    Columns may have unequal lengths; their I/Os are scaled to the usual one.
    """
    if not len(columns):
        return np.zeros((0, len(columns.rows)), np.int8), float(LEVELS)
    usual = np.median(columns.seconds)
    ios = np.maximum(columns.counts * (usual / columns.seconds)[:, None], 1.0)
    fullest = max(round_up_count(float(ios.max())), float(LEVELS))
    level = np.clip(1 + np.floor(LEVELS * np.log(ios) / np.log(fullest)), 1, LEVELS)
    return np.where(columns.counts > 0, level, 0).astype(np.int8), fullest
