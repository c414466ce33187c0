"""What a heat map shows, and the picture that comes of it at a size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collectors.latency.heat_map import HeatColumns, LatencyRange, heat_columns, heat_rows
from collectors.latency.percentiles import bucket_bounds_ns
from collectors.latency.summary import cells_of
from collectors.latency.ticks import LatencyTicks
from engine.events import Event
from tui.widgets.chart_model import ChartFrame
from tui.widgets.heat_axis import fitted_range, round_up_count
from tui.widgets.timescale import TimeScale, scale_to

LEVELS = 8
"""Steps of fullness besides none."""
_TOUCHING = 0.05
"""Share of its length by which an interval may begin late and still join the one before: clocks differ a little."""


@dataclass(frozen=True, slots=True, eq=False)
class HeatData:
    """Intervals of one subject, which of their series count, and the stretch of time to show."""

    ticks: LatencyTicks
    series: tuple[str, ...]
    events: tuple[Event, ...]
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True, eq=False)
class HeatPicture:
    """One picture: `levels` has shape (rows, cells), row 0 on top; `column_of_cell` is -1 where nothing is known."""

    frame: ChartFrame
    time: TimeScale
    span: LatencyRange
    columns: HeatColumns
    column_of_cell: NDArray[np.int64]
    levels: NDArray[np.int8]
    fullest: float
    """I/Os in a cell from which on it counts as full."""

    def column_at(self, time_ns: int) -> int | None:
        """Column that holds the interval of a moment; the last where that is later."""
        last = len(self.columns) - 1
        return min(int(np.searchsorted(self.columns.ends_ns, time_ns)), last) if last >= 0 else None

    def cells_of(self, column: int) -> NDArray[np.intp]:
        """Cells across that show a column."""
        return np.flatnonzero(self.column_of_cell == column)

    def least_of(self, level: int) -> float:
        """I/Os from which on a cell has a level."""
        return float(self.fullest ** ((level - 1) / LEVELS))


def draw_picture(
    data: HeatData, frame: ChartFrame, previous: HeatPicture | None, zoomed: LatencyRange | None
) -> HeatPicture:
    """Bin the intervals in sight; scales change no more than needed."""
    before = None if previous is None else previous.time
    time = scale_to(data.start_ns, data.end_ns, max(frame.cells, 1), before)
    ticks = data.ticks.between(time.start_ns, data.end_ns)
    span = zoomed or _range_of(ticks, data.series, None if previous is None else previous.span)
    place = (ticks.times_ns - time.start_ns) // time.column_ns
    columns = heat_columns(ticks, data.series, place, heat_rows(ticks.scale, span, max(frame.rows, 1)))
    column_of_cell = _spread(ticks, place, time)
    levels, fullest = _levels(columns)
    shown = np.concatenate((levels, np.zeros((1, levels.shape[1]), np.int8)))[column_of_cell]
    return HeatPicture(frame, time, span, columns, column_of_cell, shown.T[::-1], fullest)


def _range_of(ticks: LatencyTicks, series: tuple[str, ...], previous: LatencyRange | None) -> LatencyRange:
    buckets = cells_of(ticks, series).bucket
    if not len(buckets):
        return previous or LatencyRange(1e4, 1e8)
    low, above = bucket_bounds_ns(ticks.scale, np.array([buckets.min(), buckets.max()], np.uint16))
    return fitted_range(float(low[0]), float(above[1]), previous)


def _spread(ticks: LatencyTicks, place: NDArray[np.int64], time: TimeScale) -> NDArray[np.int64]:
    """Column of each cell; an interval longer than a cell covers all it lasted, and a gap stays one."""
    column_of_cell = np.full(time.columns, -1, np.int64)
    if not len(ticks):
        return column_of_cell
    column = np.cumsum(np.concatenate(([0], np.diff(place) != 0)), dtype=np.int64)
    begun_ns = ticks.times_ns - (ticks.spans_ns * (1 + _TOUCHING)).astype(np.int64)
    first = (begun_ns - time.start_ns) // time.column_ns + 1
    first[1:] = np.maximum(first[1:], place[:-1] + 1)
    first = np.clip(first, 0, place)
    length = place - first + 1
    cell = np.repeat(place - np.cumsum(length) + 1, length) + np.arange(int(length.sum()))
    column_of_cell[cell] = np.repeat(column, length)
    return column_of_cell


def _levels(columns: HeatColumns) -> tuple[NDArray[np.int8], float]:
    """Fullness of the cells by column, by the logarithm of their I/Os, and what the fullest stands for.

    Columns may hold unequal times; their I/Os are taken as if all held the usual one.
    """
    if not len(columns):
        return np.zeros((0, len(columns.rows)), np.int8), float(LEVELS)
    usual = np.median(columns.seconds)
    ios = np.maximum(columns.counts * (usual / columns.seconds)[:, None], 1.0)
    fullest = max(round_up_count(float(ios.max())), float(LEVELS))
    level = np.clip(1 + np.floor(LEVELS * np.log(ios) / np.log(fullest)), 1, LEVELS)
    return np.where(columns.counts > 0, level, 0).astype(np.int8), fullest
