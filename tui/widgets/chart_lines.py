"""The lines of a chart as strips of styled text, from its figures and size alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.strip import Strip

from collectors.fields import Unit
from engine.events import Event
from tui.glyphs import Glyphs
from tui.safe import fit, safe_text, width_of
from tui.widgets.axis import LABEL_WIDTH, Axis, linear_axis, log_axis, tick_label
from tui.widgets.chart_title import heading, title_runs
from tui.widgets.plot import EVENT_LINE, GRID_LINE, INSPECT_LINE, NOTHING, Plot, Span, columns_for
from tui.widgets.timescale import TimeScale, clock_ticks, envelope, scale_to

_OWNER_PARTS = {GRID_LINE: "grid-line", EVENT_LINE: "event", INSPECT_LINE: "inspect", NOTHING: "empty"}
_AXIS_WIDTH = LABEL_WIDTH + 1
_AXIS_FROM_WIDTH = 24
_TIME_AXIS_FROM_HEIGHT = 5
_CELLS_PER_CLOCK = 12
_EVENT_LABEL_MOST = 24


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
class Subject:
    """What a chart is about, and how its value axis runs."""

    title: str
    unit: Unit
    log: bool


@dataclass(frozen=True, slots=True)
class ChartLook:
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
    data: ChartData, subject: Subject, frame: ChartFrame, glyphs: Glyphs, previous: Scales | None
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


def chart_lines(data: ChartData, subject: Subject, frame: ChartFrame, scales: Scales, look: ChartLook) -> list[Strip]:
    """Draw title, plot and time axis."""
    width = frame.axis_width + frame.cells
    lines = [_title_line(data, subject, width, look)]
    if frame.rows:
        lines += _plot_lines(data, subject.unit, frame, scales, look)
    if frame.time_axis:
        lines.append(_time_axis_line(data, frame, scales.time, look))
    return lines


def empty_lines(subject: Subject, size: Size, look: ChartLook) -> list[Strip]:
    """Draw the title and say that there is nothing to show yet."""
    nothing = ChartData(np.empty(0, dtype=np.int64), (), (), 0)
    texts = ["", "waiting for data".center(size.width), *[""] * size.height][: max(0, size.height - 1)]
    style = look.style("chart--empty")
    body = [Strip([Segment(fit(text, size.width), style)], size.width) for text in texts]
    return [_title_line(nothing, subject, size.width, look), *body]


def cell_of(scale: TimeScale, time_ns: int, frame: ChartFrame) -> int:
    """Cell of the plot in which a moment falls; it may lie outside."""
    return scale.column_of(time_ns) * frame.cells // scale.columns


def _title_line(data: ChartData, subject: Subject, width: int, look: ChartLook) -> Strip:
    point = -1 if data.inspected is None else data.inspected
    curves = [(series.name, float(series.values[point])) for series in data.series if len(series.values)]
    inspected_ns = None if data.inspected is None else int(data.times_ns[data.inspected])
    head = heading(subject.title, subject.unit, inspected_ns)
    segments = [
        Segment(text, look.style("chart--title" if number is None else data.series[number].style))
        for text, number in title_runs(head, subject.unit, curves, width, look.glyphs)
    ]
    return Strip(segments, width)


def _plot_lines(data: ChartData, unit: Unit, frame: ChartFrame, scales: Scales, look: ChartLook) -> list[Strip]:
    plot = Plot(frame.rows, frame.cells, look.glyphs)
    heights = scales.values.place(np.array(scales.values.ticks))
    labels = {plot.row_of(height): tick for height, tick in zip(heights, scales.values.ticks, strict=True)}
    for row in labels:
        plot.draw_grid_line(row)
    marks = _event_cells(data.events, scales.time, frame)
    for cell, _ in marks:
        plot.draw_event_line(cell)
    spans = []
    for series in data.series:
        low, high = envelope(data.times_ns, series.values, scales.time)
        spans.append(Span(scales.values.place(low), scales.values.place(high)))
    plot.draw_curves(spans, scales.time.start_ns // scales.time.column_ns)
    _label_events(plot, marks)
    if data.inspected is not None:
        plot.draw_inspect_line(cell_of(scales.time, int(data.times_ns[data.inspected]), frame))
    parts = {number: series.style for number, series in enumerate(data.series)}
    parts |= {owner: f"chart--{part}" for owner, part in _OWNER_PARTS.items()}
    axis_style = look.style("chart--axis")
    lines = []
    for row in range(frame.rows):
        segments = [Segment(text, look.style(parts[owner])) for text, owner in plot.runs(row)]
        if frame.axis_width:
            segments.insert(0, Segment(_axis_text(labels.get(row), unit, frame, look.glyphs), axis_style))
        lines.append(Strip(segments, frame.axis_width + frame.cells))
    return lines


def _axis_text(tick: float | None, unit: Unit, frame: ChartFrame, glyphs: Glyphs) -> str:
    if tick is None:
        return glyphs.vertical.rjust(frame.axis_width)
    return tick_label(tick, unit).rjust(LABEL_WIDTH) + glyphs.tick_left


def _event_cells(marked: Iterable[Event], scale: TimeScale, frame: ChartFrame) -> list[tuple[int, Event]]:
    """Cells of the events in sight, in order of time."""
    placed = [(cell_of(scale, event.time_ns, frame), event) for event in marked]
    return sorted(((cell, event) for cell, event in placed if 0 <= cell < frame.cells), key=lambda pair: pair[0])


def _label_events(plot: Plot, marks: Sequence[tuple[int, Event]]) -> None:
    """Write the text of each event beside its line, as far as the next."""
    ends = [cell for cell, _ in marks] + [plot.shape[1]]
    for (cell, event), end in zip(marks, ends[1:], strict=True):
        text = safe_text(event.text)[:_EVENT_LABEL_MOST]
        if width_of(text) == len(text) < end - cell - 1:
            plot.draw_label(0, cell + 1, text)


def _time_axis_line(data: ChartData, frame: ChartFrame, scale: TimeScale, look: ChartLook) -> Strip:
    """Draw the clock under the plot, and on it the marks of the events, which no label may hide or join."""
    glyphs = look.glyphs
    marks = {cell: glyphs.event_marks[event.kind] for cell, event in _event_cells(data.events, scale, frame)}
    chars = [glyphs.horizontal] * frame.cells
    free_from = 0
    for time_ns, label in clock_ticks(scale.start_ns, scale.end_ns, frame.cells // _CELLS_PER_CLOCK):
        cell = cell_of(scale, time_ns, frame)
        end = cell + 1 + len(label)
        if free_from <= cell and end < frame.cells and marks.keys().isdisjoint(range(cell, end + 1)):
            chars[cell:end] = [glyphs.tick_below, *label]
            free_from = end + 1
    axis_style, event_style = look.style("chart--axis"), look.style("chart--event")
    segments = [Segment(glyphs.corner.rjust(frame.axis_width), axis_style)] if frame.axis_width else []
    start = 0
    for cell, mark in marks.items():
        if cell > start:
            segments.append(Segment("".join(chars[start:cell]), axis_style))
        segments.append(Segment(mark, event_style))
        start = cell + 1
    if start < frame.cells:
        segments.append(Segment("".join(chars[start:]), axis_style))
    return Strip(segments, frame.axis_width + frame.cells)
