"""The lines of a chart as strips of styled text."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
from msgspec import Struct
from rich.color import Color, blend_rgb
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.strip import Strip

from collectors.field import Thresholds, Unit
from engine.replacing import replace
from tui.text.format import format_quantity
from tui.text.glyphs import Glyphs
from tui.text.safe import cell_text, fit, width_of
from tui.widgets.chart.areas import (
    LOWER,
    LOWER_ON_UPPER,
    UNSPLIT,
    UNSPLIT_TOP,
    UPPER,
    UPPER_TOP,
    area_columns,
    fill_areas,
)
from tui.widgets.chart.axes import LABEL_WIDTH, envelope, tick_label
from tui.widgets.chart.model import (
    ChartData,
    ChartFrame,
    ChartSeries,
    ChartStyle,
    Scales,
    Stack,
    ValueAxis,
    cell_of,
)
from tui.widgets.chart.plot import EVENT_LABEL, EVENT_LINE, GRID_LINE, INSPECT_LINE, NOTHING, Plot, Span
from tui.widgets.time_axis import TimeAxis, TimeAxisStyle, place_labels, time_axis

_VALUE_WIDTH = 5
Run = tuple[str, str]
"""Text and component class."""


def heading(title: str, unit: Unit, inspected_ns: int | None, *, log: bool = False) -> str:
    """Heading of a chart: title, unit, whether its axis is logarithmic, and the inspected time, if any."""
    moment = "" if inspected_ns is None else time.strftime(" at %H:%M:%S", time.localtime(inspected_ns / 1e9))
    return cell_text(title) + (f" {unit}" if unit else "") + (" log" if log else "") + moment


class LegendEntry(Struct, frozen=True):
    """A curve or an area in the legend: how it is drawn, its name, its value now or at the inspected time."""

    sample: str
    name: str
    value: float
    style: str
    hot: Thresholds | None = None


def title_runs(
    heads: Sequence[str], unit: Unit, entries: Sequence[LegendEntry], width: int, glyphs: Glyphs
) -> list[Run]:
    """Lay out the line as runs of text and style; exactly `width` cells.

    If room is short, padding of the values is dropped first, then the first head gives way to a shorter one that leaves
    room for more entries, as nobody knows what an area without one is, then entries are dropped from the end.
    """
    texts = [_entry_runs(entry, unit, glyphs, value_width=_VALUE_WIDTH, gap="  ") for entry in entries]
    if sum(map(_width, texts)) > width - width_of(heads[0]):
        texts = [_entry_runs(entry, unit, glyphs, value_width=0, gap=" ") for entry in entries]
    head = max(heads, key=lambda head: _fitting(texts, width - width_of(head)))
    runs: list[Run] = [(fit(head, min(width, width_of(head)), glyphs.ellipsis), "chart--title")]
    room = width - width_of(runs[0][0])
    for text in texts[: _fitting(texts, room)]:
        runs += text
        room -= _width(text)
    return [*runs, (" " * room, "chart--title")] if room else runs


def _fitting(texts: Sequence[list[Run]], room: int) -> int:
    """Count those from the start that have room together."""
    ends = itertools.accumulate(map(_width, texts))
    return sum(end <= room for end in ends)


def _width(runs: Sequence[Run]) -> int:
    return sum(width_of(text) for text, _ in runs)


def _entry_runs(entry: LegendEntry, unit: Unit, glyphs: Glyphs, *, value_width: int, gap: str) -> list[Run]:
    """Legend of one curve or area; a value at a threshold has its mark and colour."""
    level = 0 if entry.hot is None else entry.hot.level(entry.value)
    name = " ".join(filter(None, (entry.sample, cell_text(entry.name))))
    value = format_quantity(entry.value, unit, _VALUE_WIDTH)
    if not level:
        return [(f"{gap}{name} {value.rjust(value_width)}", entry.style)]
    marked = (glyphs.warm, glyphs.hot)[level - 1] + value
    return [(f"{gap}{name} ", entry.style), (marked.rjust(value_width), ("chart--warm", "chart--hot")[level - 1])]


_OWNER_PARTS = {
    GRID_LINE: "grid-line",
    EVENT_LINE: "event",
    EVENT_LABEL: "event",
    INSPECT_LINE: "inspect",
    NOTHING: "empty",
}
_CELLS_PER_EVENT_LINE = 4
"""Groups of events denser than this get no lines, which would fill the plot; the marks on the axis remain."""


def legend_of(data: ChartData, glyphs: Glyphs) -> list[LegendEntry]:
    """Entries of all curves; a stack has those of the whole and its parts, the upper one first."""
    if data.stack is None:
        samples = glyphs.curve_samples
        return [
            _entry(samples[number % len(samples)], series, data)
            for number, series in enumerate(data.series)
            if len(series.values)
        ]
    stack, (lower, upper, unsplit) = data.stack, glyphs.areas
    whole = replace(stack.whole, values=stack.totals)
    split = np.isfinite(stack.lower.values + stack.upper.values)
    parts = [_entry(upper, stack.upper, data), _entry(lower, stack.lower, data)] if split.any() else []
    has_unsplit = bool((np.isfinite(whole.values) & ~split).any())
    return [_entry(unsplit if has_unsplit else "", whole, data), *parts]


def _entry(sample: str, series: ChartSeries, data: ChartData) -> LegendEntry:
    value = float(series.values[-1 if data.inspected is None else data.inspected])
    return LegendEntry(sample, series.name, value, series.style, series.hot)


def title_line(data: ChartData, subject: ValueAxis, width: int, chart_style: ChartStyle, *, log: bool = False) -> Strip:
    """Draw the title with the legend."""
    inspected_ns = None if data.inspected is None else int(data.times_ns[data.inspected])
    entries = legend_of(data, chart_style.glyphs)
    whole = f"{subject.title} of {subject.of}" if subject.of else subject.title
    heads = [heading(title, subject.unit, inspected_ns, log=log) for title in dict.fromkeys((whole, subject.title))]
    runs = title_runs(heads, subject.unit, entries, width, chart_style.glyphs)
    return Strip([Segment(text, chart_style.style(style)) for text, style in runs], width)


def empty_lines(subject: ValueAxis, size: Size, chart_style: ChartStyle, reason: str) -> list[Strip]:
    """Draw the title and say why there is nothing to show."""
    nothing = ChartData(np.empty(0, dtype=np.int64), (), (), 0)
    texts = ["", reason.center(size.width), *[""] * size.height][: max(0, size.height - 1)]
    style = chart_style.style("chart--empty")
    body = [Strip([Segment(fit(text, size.width), style)], size.width) for text in texts]
    return [title_line(nothing, subject, size.width, chart_style), *body]


class ChartPainter:
    """Draws one chart once: its figures in one frame, by one pair of scales; `axis` is that of the drawing before."""

    def __init__(
        self,
        data: ChartData,
        subject: ValueAxis,
        frame: ChartFrame,
        scales: Scales,
        chart_style: ChartStyle,
        *,
        axis: TimeAxis | None = None,
    ) -> None:
        self._data = data
        self._subject = subject
        self._frame = frame
        self._scales = scales
        self._style = chart_style
        self._width = frame.axis_width + frame.cells
        style = chart_style.style
        axis_style = TimeAxisStyle(chart_style.glyphs, style("chart--axis"), style("chart--event"))
        note = "log" if scales.values.log else ""
        self.axis = time_axis(data.events, scales.time, frame, axis_style, note, before=axis)
        """The time axis, for the next drawing."""
        self._groups = self.axis.groups

    def lines(self) -> list[Strip]:
        """Draw title, plot and time axis; a logarithmic axis is named below its labels, or else in the title."""
        is_log, has_corner = self._scales.values.log, self._frame.time_axis and self._frame.axis_width > 0
        log_in_title = is_log and not has_corner
        lines = [title_line(self._data, self._subject, self._width, self._style, log=log_in_title)]
        if self._frame.rows:
            lines += self._plot_lines()
        if self._frame.time_axis:
            lines.append(self.axis.line)
        return lines

    def _plot_lines(self) -> list[Strip]:
        axis, frame, chart_style = self._scales.values, self._frame, self._style
        plot = Plot(frame.rows, frame.cells, chart_style.glyphs)
        heights = axis.position(np.array(axis.ticks))
        labels = {plot.row_of(height): tick for height, tick in zip(heights, axis.ticks, strict=True)}
        self._fill(plot, list(labels))
        styles = {owner: chart_style.style(f"chart--{part}") for owner, part in _OWNER_PARTS.items()}
        if self._data.stack is None:
            styles |= {number: chart_style.style(series.style) for number, series in enumerate(self._data.series)}
        else:
            styles |= area_styles(self._data.stack, chart_style)
        ground = styles[NOTHING].bgcolor
        grounded = [owner for owner, style in styles.items() if style.bgcolor != ground]
        lines = []
        for row, runs in enumerate(plot.runs(grounded)):
            segments = [Segment(text, styles[owner]) for text, owner in runs]
            if frame.axis_width:
                segments.insert(0, Segment(self._axis_text(labels.get(row)), chart_style.style("chart--axis")))
            lines.append(Strip(segments, self._width))
        return lines

    def _fill(self, plot: Plot, tick_rows: list[int]) -> None:
        """Draw the plot from back to front."""
        scales, data = self._scales, self._data
        for row in tick_rows:
            plot.draw_grid_line(row)
        if len(self._groups) <= self._frame.cells // _CELLS_PER_EVENT_LINE:
            for group in self._groups:
                plot.draw_event_line(group.cell)
        if data.stack is None:
            self._draw_curves(plot)
        else:
            self._draw_areas(plot, data.stack)
        for label in place_labels(self._groups, self._frame.rows, plot.free_cells, self._style.glyphs.ellipsis):
            plot.draw_label(label.row, label.cell, label.text)
        if data.inspected is not None:
            plot.draw_inspect_line(cell_of(scales.time, int(data.times_ns[data.inspected]), self._frame))

    def _draw_curves(self, plot: Plot) -> None:
        scales, spans = self._scales, []
        for series in self._data.series:
            low, high = envelope(self._data.times_ns, series.values, scales.time)
            spans.append(Span(scales.values.position(low), scales.values.position(high)))
        plot.draw_curves(spans, scales.time.start_ns // scales.time.column_ns)

    def _draw_areas(self, plot: Plot, stack: Stack) -> None:
        whole, lower, upper = stack.whole.values, stack.lower.values, stack.upper.values
        columns = area_columns(self._data.times_ns, whole, lower, upper, self._scales.time)
        shades = dimmed(self._style.style(stack.upper.style)) is None
        glyphs = self._style.glyphs
        plot.draw_areas(*fill_areas(columns, self._scales.values, self._frame.rows, glyphs, shades=shades))

    def _axis_text(self, tick: float | None) -> str:
        glyphs = self._style.glyphs
        if tick is None:
            return glyphs.vertical.rjust(self._frame.axis_width)
        return tick_label(tick, self._subject.unit).rjust(LABEL_WIDTH) + glyphs.tick_left


_SHADE, _LIGHT_SHADE = 0.5, 0.25
"""Share of the colour in a cell that is filled with a shade, as the upper part and a whole without parts are."""


@lru_cache(maxsize=64)
def dimmed(style: Style, share: float = _SHADE) -> Color | None:
    """Colour of a block that looks as the style's shade; None with the terminal's own colours."""
    colour, ground = style.color, style.bgcolor
    if colour is None or ground is None or colour.triplet is None or ground.triplet is None:
        return None
    return Color.from_triplet(blend_rgb(ground.triplet, colour.triplet, share))


def area_styles(stack: Stack, chart_style: ChartStyle) -> Mapping[int, Style]:
    """Styles of the cells of a stack by owner."""
    return _area_styles(*(chart_style.style(part.style) for part in (stack.whole, stack.lower, stack.upper)))


@lru_cache(maxsize=16)
def _area_styles(whole: Style, lower: Style, upper: Style) -> Mapping[int, Style]:
    return {
        LOWER: lower,
        UPPER: upper,
        UNSPLIT: whole,
        LOWER_ON_UPPER: lower + Style(bgcolor=dimmed(upper) or upper.color),
        UPPER_TOP: upper + Style(color=dimmed(upper)),
        UNSPLIT_TOP: whole + Style(color=dimmed(whole, _LIGHT_SHADE)),
    }
