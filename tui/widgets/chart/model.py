"""What a chart shows, how its size is divided, and the scales that fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from rich.style import Style
from textual.geometry import Size

from collectors.field import Thresholds, Unit
from engine.events import Event
from tui.kept import AxisChoice
from tui.text.glyphs import Glyphs
from tui.widgets.chart.axes import LABEL_WIDTH, Axis, TimeScale, linear_axis, log_axis, scale_to
from tui.widgets.chart.plot import columns_for

_AXIS_WIDTH = LABEL_WIDTH + 1
_AXIS_FROM_WIDTH = 24
_TIME_AXIS_FROM_HEIGHT = 5


class ChartSeries(Struct, frozen=True, eq=False):
    """One curve: its name, a value per time (NaN for none), and the component class that colours it."""

    name: str
    values: NDArray[np.float64]
    style: str = "chart--series"
    hot: Thresholds | None = None
    """Limits at which its value is marked in the legend."""


class Stack(Struct, frozen=True, eq=False):
    """Two parts that add up to a whole, drawn as areas, the lower one at the bottom."""

    whole: ChartSeries
    lower: ChartSeries
    upper: ChartSeries

    @property
    def totals(self) -> NDArray[np.float64]:
        """The sum of the parts, or the whole where they are not known."""
        sums = self.lower.values + self.upper.values
        return np.where(np.isnan(sums), self.whole.values, sums)


class ChartData(Struct, frozen=True, eq=False):
    """What a chart shows; times do not decrease."""

    times_ns: NDArray[np.int64]
    series: tuple[ChartSeries, ...]
    events: tuple[Event, ...]
    span_ns: int
    inspected: int | None = None
    """Number of the inspected point."""
    stack: Stack | None = None
    """Areas in place of curves."""

    @property
    def scaled(self) -> Sequence[NDArray[np.float64]]:
        """Values that the axis has to hold, by curve."""
        return [self.stack.totals] if self.stack is not None else [series.values for series in self.series]


class ValueAxis(Struct, frozen=True):
    """What a chart is about, and how its value axis runs."""

    title: str
    unit: Unit
    axis: AxisChoice = AxisChoice.LINEAR
    of: str = ""
    """Owner of the figures, in the title where there is room for it and the legend."""


class ChartStyle(Struct, frozen=True):
    """Marks and styles of one chart; styles by component class."""

    glyphs: Glyphs
    styles: Mapping[str, Style]

    def style(self, name: str) -> Style:
        """Style of a component class, or of curves in general if there is no such class."""
        return self.styles.get(name) or self.styles["chart--series"]


class ChartFrame(Struct, frozen=True):
    """How a chart's size is divided."""

    axis_width: int
    cells: int
    rows: int
    time_axis: bool


class Scales(Struct, frozen=True):
    """Both axes as drawn; given back for the next drawing so that they stay as they are while data fits."""

    time: TimeScale
    values: Axis


def divide(size: Size) -> ChartFrame:
    """Divide a size into title, axes and plot; small sizes lose the axes first."""
    axis_width = _AXIS_WIDTH if size.width >= _AXIS_FROM_WIDTH else 0
    time_axis = size.height >= _TIME_AXIS_FROM_HEIGHT
    return ChartFrame(axis_width, max(0, size.width - axis_width), max(0, size.height - 1 - time_axis), time_axis)


def choose_scales(
    data: ChartData, subject: ValueAxis, frame: ChartFrame, glyphs: Glyphs, previous: Scales | None
) -> Scales:
    """Fit both axes to the figures, changing them no more than needed."""
    last = int(data.times_ns[-1])
    first = min(int(data.times_ns[0]), last - data.span_ns)
    columns = frame.cells if data.stack is not None else columns_for(frame.cells, glyphs)
    per_cell = columns // max(1, frame.cells)
    time_scale = scale_to(first, last, columns, None if previous is None else previous.time, per_cell=per_cell)
    before = None if previous is None else previous.values
    finite = [values[np.isfinite(values)] for values in data.scaled]
    largest = max((float(values.max(initial=0.0)) for values in finite), default=0.0)
    has_room = frame.rows >= _LOG_FROM_ROWS or subject.axis is AxisChoice.LOG
    was_log = before is not None and before.log
    if largest > 0 and has_room and is_logarithmic(subject.axis, finite, was_log=was_log):
        smallest = min(float(values[values > 0].min(initial=np.inf)) for values in finite)
        return Scales(time_scale, log_axis(smallest, largest, frame.rows, before))
    return Scales(time_scale, linear_axis(largest, subject.unit, frame.rows, before))


_LOG_FROM_ROWS = 4
"""Fewest rows at which decades have labels of their own."""
_FLAT_TIMES = 25.0
"""A curve whose typical value is below the largest by this factor is a line at the bottom of a linear axis."""
_LEVEL_TIMES = 12.0
"""Factor below which the axis is linear again; the range between the two keeps it from alternating."""


def is_logarithmic(choice: AxisChoice, finite: Sequence[NDArray[np.float64]], *, was_log: bool) -> bool:
    """Whether the axis is logarithmic: as chosen, or where the largest value would flatten one of the curves.

    The typical value of a curve is the median of its values above 0; `finite` are the values of each curve.
    """
    if choice is not AxisChoice.AUTO:
        return choice is AxisChoice.LOG
    typical = [_median(above) for above in (values[values > 0] for values in finite) if len(above)]
    if not typical:
        return False
    largest = max(float(values.max(initial=0.0)) for values in finite)
    return largest > min(typical) * (_LEVEL_TIMES if was_log else _FLAT_TIMES)


def _median(values: NDArray[np.float64]) -> float:
    """Return the upper median: numpy's takes longer than the rest of a chart's scales."""
    return float(np.partition(values, len(values) // 2)[len(values) // 2])


def cell_of(scale: TimeScale, time_ns: int, frame: ChartFrame) -> int:
    """Cell of the plot in which a moment falls; it may lie outside."""
    return scale.column_of(time_ns) * frame.cells // scale.columns
