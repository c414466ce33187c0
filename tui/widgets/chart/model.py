"""What a chart shows, how its size is divided, and the scales that fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.style import Style
from textual.geometry import Size

from collectors.field import Unit
from engine.events import Event
from tui.text.glyphs import Glyphs
from tui.widgets.chart.axes import LABEL_WIDTH, Axis, TimeScale, linear_axis, log_axis, scale_to
from tui.widgets.chart.plot import columns_for

_AXIS_WIDTH = LABEL_WIDTH + 1
_AXIS_FROM_WIDTH = 24
_TIME_AXIS_FROM_HEIGHT = 5


@dataclass(frozen=True, slots=True, eq=False)
class ChartSeries:
    """One curve: its name, a value per time (NaN for none), and the component class that colours it."""

    name: str
    values: NDArray[np.float64]
    style: str = "chart--series"


@dataclass(frozen=True, slots=True, eq=False)
class ChartData:
    """What a chart shows; times do not decrease."""

    times_ns: NDArray[np.int64]
    series: tuple[ChartSeries, ...]
    events: tuple[Event, ...]
    span_ns: int
    inspected: int | None = None
    """Number of the inspected point."""


@dataclass(frozen=True, slots=True)
class ValueAxis:
    """What a chart is about, and how its value axis runs."""

    title: str
    unit: Unit
    log: bool


@dataclass(frozen=True, slots=True)
class ChartStyle:
    """Marks and styles of one chart; styles by component class."""

    glyphs: Glyphs
    styles: Mapping[str, Style]

    def style(self, name: str) -> Style:
        """Style of a component class, or of curves in general if there is no such class."""
        return self.styles.get(name) or self.styles["chart--series"]


@dataclass(frozen=True, slots=True)
class ChartFrame:
    """How a chart's size is divided."""

    axis_width: int
    cells: int
    rows: int
    time_axis: bool


@dataclass(frozen=True, slots=True)
class Scales:
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
    columns = columns_for(frame.cells, glyphs)
    time_scale = scale_to(first, last, columns, None if previous is None else previous.time)
    before = None if previous is None else previous.values
    finite = np.concatenate([series.values for series in data.series]) if data.series else np.empty(0)
    finite = finite[np.isfinite(finite)]
    largest = float(finite.max(initial=0.0))
    if subject.log and largest > 0:
        return Scales(time_scale, log_axis(float(finite[finite > 0].min()), largest, frame.rows, before))
    return Scales(time_scale, linear_axis(largest, subject.unit, frame.rows, before))


def cell_of(scale: TimeScale, time_ns: int, frame: ChartFrame) -> int:
    """Cell of the plot in which a moment falls; it may lie outside."""
    return scale.column_of(time_ns) * frame.cells // scale.columns
