"""The lines of a chart as strips of styled text."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from rich.segment import Segment
from textual.geometry import Size
from textual.strip import Strip

from collectors.field import Unit
from tui.text.format import format_quantity
from tui.text.glyphs import Glyphs
from tui.text.safe import cell_text, fit, width_of
from tui.widgets.chart.axes import LABEL_WIDTH, envelope, tick_label
from tui.widgets.chart.model import ChartData, ChartFrame, ChartStyle, Scales, ValueAxis, cell_of
from tui.widgets.chart.plot import EVENT_LINE, GRID_LINE, INSPECT_LINE, NOTHING, Plot, Span
from tui.widgets.time_axis import TimeAxisStyle, events_in_sight, time_axis_line

_VALUE_WIDTH = 5


def heading(title: str, unit: Unit, inspected_ns: int | None) -> str:
    """Heading of a chart: title, unit, and the inspected time, if any."""
    moment = "" if inspected_ns is None else time.strftime(" at %H:%M:%S", time.localtime(inspected_ns / 1e9))
    return cell_text(title) + (f" {unit}" if unit else "") + moment


def title_runs(
    head: str, unit: Unit, curves: Sequence[tuple[str, float]], width: int, glyphs: Glyphs
) -> list[tuple[str, int | None]]:
    """Lay out the line as runs of text and curve number, None for the heading; exactly `width` cells.

    `curves` are names and values, now or at the inspected time. If room is short, padding of the values is dropped
    first, then curves from the end.
    """
    runs: list[tuple[str, int | None]] = [(fit(head, min(width, width_of(head)), glyphs.ellipsis), None)]
    room = width - width_of(runs[0][0])
    entries = _entries(curves, unit, glyphs, value_width=_VALUE_WIDTH, gap="  ")
    if sum(map(width_of, entries)) > room:
        entries = _entries(curves, unit, glyphs, value_width=0, gap=" ")
    for number, entry in enumerate(entries):
        if width_of(entry) > room:
            break
        runs.append((entry, number))
        room -= width_of(entry)
    return [*runs, (" " * room, None)] if room else runs


def _entries(
    curves: Sequence[tuple[str, float]], unit: Unit, glyphs: Glyphs, *, value_width: int, gap: str
) -> list[str]:
    """Legend entry of each curve."""
    samples = glyphs.curve_samples
    return [
        f"{gap}{samples[number % len(samples)]} {cell_text(name)} "
        f"{format_quantity(value, unit, _VALUE_WIDTH).rjust(value_width)}"
        for number, (name, value) in enumerate(curves)
    ]


_OWNER_PARTS = {GRID_LINE: "grid-line", EVENT_LINE: "event", INSPECT_LINE: "inspect", NOTHING: "empty"}
_CELLS_PER_EVENT_LINE = 4
"""Events denser than this get no lines, which would fill the plot; the marks on the axis remain."""
_EVENT_LABEL_MOST = 24


def title_line(data: ChartData, subject: ValueAxis, width: int, chart_style: ChartStyle) -> Strip:
    """Draw the title with the legend."""
    point = -1 if data.inspected is None else data.inspected
    curves = [(series.name, float(series.values[point])) for series in data.series if len(series.values)]
    inspected_ns = None if data.inspected is None else int(data.times_ns[data.inspected])
    head = heading(subject.title, subject.unit, inspected_ns)
    segments = [
        Segment(text, chart_style.style("chart--title" if number is None else data.series[number].style))
        for text, number in title_runs(head, subject.unit, curves, width, chart_style.glyphs)
    ]
    return Strip(segments, width)


def empty_lines(subject: ValueAxis, size: Size, chart_style: ChartStyle, reason: str) -> list[Strip]:
    """Draw the title and say why there is nothing to show."""
    nothing = ChartData(np.empty(0, dtype=np.int64), (), (), 0)
    texts = ["", reason.center(size.width), *[""] * size.height][: max(0, size.height - 1)]
    style = chart_style.style("chart--empty")
    body = [Strip([Segment(fit(text, size.width), style)], size.width) for text in texts]
    return [title_line(nothing, subject, size.width, chart_style), *body]


class ChartPainter:
    """Draws one chart once: its figures in one frame, by one pair of scales."""

    def __init__(
        self, data: ChartData, subject: ValueAxis, frame: ChartFrame, scales: Scales, chart_style: ChartStyle
    ) -> None:
        self._data = data
        self._subject = subject
        self._frame = frame
        self._scales = scales
        self._style = chart_style
        self._width = frame.axis_width + frame.cells
        self._events = events_in_sight(data.events, scales.time, frame)

    def lines(self) -> list[Strip]:
        """Draw title, plot and time axis."""
        lines = [title_line(self._data, self._subject, self._width, self._style)]
        if self._frame.rows:
            lines += self._plot_lines()
        if self._frame.time_axis:
            chart_style = self._style
            axis_style = TimeAxisStyle(
                chart_style.glyphs, chart_style.style("chart--axis"), chart_style.style("chart--event")
            )
            lines.append(time_axis_line(self._scales.time, self._frame, self._events, axis_style))
        return lines

    def _plot_lines(self) -> list[Strip]:
        axis, frame, chart_style = self._scales.values, self._frame, self._style
        plot = Plot(frame.rows, frame.cells, chart_style.glyphs)
        heights = axis.position(np.array(axis.ticks))
        labels = {plot.row_of(height): tick for height, tick in zip(heights, axis.ticks, strict=True)}
        self._fill(plot, list(labels))
        parts = {number: series.style for number, series in enumerate(self._data.series)}
        parts |= {owner: f"chart--{part}" for owner, part in _OWNER_PARTS.items()}
        lines = []
        for row in range(frame.rows):
            segments = [Segment(text, chart_style.style(parts[owner])) for text, owner in plot.runs(row)]
            if frame.axis_width:
                segments.insert(0, Segment(self._axis_text(labels.get(row)), chart_style.style("chart--axis")))
            lines.append(Strip(segments, self._width))
        return lines

    def _fill(self, plot: Plot, tick_rows: list[int]) -> None:
        """Draw the plot from back to front."""
        scales, data = self._scales, self._data
        for row in tick_rows:
            plot.draw_grid_line(row)
        if len(self._events) <= self._frame.cells // _CELLS_PER_EVENT_LINE:
            for cell, _ in self._events:
                plot.draw_event_line(cell)
        spans = []
        for series in data.series:
            low, high = envelope(data.times_ns, series.values, scales.time)
            spans.append(Span(scales.values.position(low), scales.values.position(high)))
        plot.draw_curves(spans, scales.time.start_ns // scales.time.column_ns)
        self._label_events(plot)
        if data.inspected is not None:
            plot.draw_inspect_line(cell_of(scales.time, int(data.times_ns[data.inspected]), self._frame))

    def _label_events(self, plot: Plot) -> None:
        """Write the text of each event next to its line, if there is room before the next."""
        ends = [cell for cell, _ in self._events] + [self._frame.cells]
        for (cell, event), end in zip(self._events, ends[1:], strict=True):
            text = cell_text(event.text)[:_EVENT_LABEL_MOST]
            if width_of(text) == len(text) < end - cell - 1:
                plot.draw_label(0, cell + 1, text)

    def _axis_text(self, tick: float | None) -> str:
        glyphs = self._style.glyphs
        if tick is None:
            return glyphs.vertical.rjust(self._frame.axis_width)
        return tick_label(tick, self._subject.unit).rjust(LABEL_WIDTH) + glyphs.tick_left
