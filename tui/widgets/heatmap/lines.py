"""The lines of a heat map as strips of styled text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property

import numpy as np
from msgspec import Struct
from rich.color import Color, blend_rgb
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.strip import Strip

from collectors.field import Unit
from collectors.latency.cache_bands import CacheBands
from tui.text.glyphs import Glyphs
from tui.text.safe import fit, width_of
from tui.widgets.chart.axes import LABEL_WIDTH, tick_label
from tui.widgets.heatmap.legend import LEAST_MS_NS, PLAIN, cursor_text, latency_text, legend
from tui.widgets.heatmap.model import LEVELS, HeatData, HeatPicture, label_values_ns
from tui.widgets.heatmap.plot import (
    BEYOND,
    CROSS,
    CURSOR,
    EVENT,
    GRID,
    MARKED,
    OWNER_BITS,
    P50,
    P99,
    PEAK,
    UNDER_SHIFT,
    UNKNOWN,
    HeatPlot,
)
from tui.widgets.time_axis import EventGroup, TimeAxisStyle, groups_in_sight, place_labels, time_axis_line

PARTS: Mapping[int, str] = {
    PLAIN: "title",
    0: "empty",
    **{level: f"level-{level}" for level in range(1, LEVELS + 1)},
    P50: "p50",
    P99: "p99",
    PEAK: "peak",
    BEYOND: "beyond",
    UNKNOWN: "unknown",
    EVENT: "event",
    GRID: "grid-line",
}
"""Part of the component class after `heat--`, by owner of a cell."""
_BAND_NAMES = (" cache hit band ", " miss band ")
_LEVEL_BITS = 0xF
_SHINING_THROUGH = 0.4
_CELLS_PER_EVENT_LINE = 4
_NS_PER_MS = 1e6


class HeatmapStyle(Struct, frozen=True, dict=True):
    """Marks and styles of one heat map; styles by the part of a component class after `heat--`."""

    glyphs: Glyphs
    styles: Mapping[str, Style]

    @cached_property
    def _known(self) -> dict[int, Style]:
        """Styles by owner that were asked for."""
        return {}

    def of(self, owner: int) -> Style:
        """Style of an owner, highlighted if marked."""
        style = self._known.get(owner)
        if style is None:
            style = self._known[owner] = self._made(owner)
        return style

    def _made(self, owner: int) -> Style:
        if owner == PLAIN:
            return self.styles["title"]
        style = self.styles[PARTS[owner & OWNER_BITS]]
        under = owner >> UNDER_SHIFT & _LEVEL_BITS
        if under:
            style += dimmed_ground(self.styles[PARTS[under]], style)
        if owner & CURSOR:
            return style + self.styles["cursor"]
        if owner & CROSS:
            return style + self.styles["cross"]
        return style + self.styles["marked"] if owner & MARKED else style


def dimmed_ground(level: Style, line: Style) -> Style:
    """Background of a line that crosses a level: its colour, dimmed; none with the terminal's own colours."""
    colour, ground = level.color, line.bgcolor
    if colour is None or ground is None or colour.triplet is None or ground.triplet is None:
        return Style.null()
    return Style(bgcolor=Color.from_triplet(blend_rgb(ground.triplet, colour.triplet, _SHINING_THROUGH)))


class HeatMarks(Struct, frozen=True):
    """Overlay of a heat map: the cursor as column and row (0 lowest), the marked time, and percentile lines."""

    cursor: tuple[int, int] | None
    marked_ns: tuple[int, int] | None
    lines: bool
    bands: CacheBands | None = None
    """Latencies of the hits and misses of a cache."""


def empty_heat_lines(text: str, size: Size, map_style: HeatmapStyle) -> list[Strip]:
    """Draw the text that says why there is nothing to show."""
    lines = ["", text, *[""] * size.height][: size.height]
    return [Strip([Segment(fit(f" {line}", size.width), map_style.styles["hint"])], size.width) for line in lines]


def heat_lines(data: HeatData, picture: HeatPicture, marks: HeatMarks, map_style: HeatmapStyle) -> list[Strip]:
    """Draw legend or cursor, plot and time axis."""
    frame = picture.frame
    groups = groups_in_sight(data.events, picture.time, frame)
    lines = [_title_line(picture, marks, map_style)]
    if frame.rows:
        lines += _plot_lines(picture, _plot(picture, groups, marks, map_style), map_style)
    if frame.time_axis:
        axis = TimeAxisStyle(map_style.glyphs, map_style.styles["axis"], map_style.styles["event"])
        lines.append(time_axis_line(picture.time, frame, groups, axis))
    return lines


def _title_line(picture: HeatPicture, marks: HeatMarks, map_style: HeatmapStyle) -> Strip:
    width = picture.frame.axis_width + picture.frame.cells
    if marks.cursor is not None:
        text = f" {cursor_text(picture, *marks.cursor)}"
        return Strip([Segment(fit(text, width, map_style.glyphs.ellipsis), map_style.styles["title"])], width)
    unit = f"{'ms':>{LABEL_WIDTH}}  " if picture.frame.axis_width else " "
    segments, room = [Segment(unit, map_style.styles["title"])], width - len(unit)
    for text, owner in legend(picture, map_style.glyphs, lines=marks.lines):
        if width_of(text) > room:
            break
        segments.append(Segment(text, map_style.of(owner)))
        room -= width_of(text)
    return Strip([*segments, Segment(" " * room, map_style.styles["title"])], width)


def _plot(picture: HeatPicture, groups: list[EventGroup], marks: HeatMarks, map_style: HeatmapStyle) -> HeatPlot:
    """Draw the plot from back to front."""
    plot = HeatPlot(picture, map_style.glyphs)
    for row in _labels(picture):
        plot.draw_grid_line(row)
    if len(groups) <= picture.frame.cells // _CELLS_PER_EVENT_LINE:
        for group in groups:
            plot.draw_event_line(group.cell)
    if marks.lines:
        plot.draw_lines()
    if marks.bands is not None:
        _draw_bands(plot, picture, marks.bands)
    for label in place_labels(groups, picture.frame.rows, plot.free_cells, map_style.glyphs.ellipsis):
        plot.draw_label(label.row, label.cell, label.text)
    if marks.marked_ns is not None:
        start, end = (picture.time.column_of(time_ns) for time_ns in marks.marked_ns)
        plot.highlight_cells(slice(max(min(start + 1, end), 0), max(end + 1, 0)), MARKED)
    if marks.cursor is not None:
        _draw_cursor(plot, picture, marks.cursor)
    return plot


def _draw_bands(plot: HeatPlot, picture: HeatPicture, bands: CacheBands) -> None:
    """Name the two bands at the left, in the row of the middle of each; not where both are in one row."""
    rows = picture.columns.rows
    middles = np.array([math.sqrt(band.low_ns * band.high_ns) for band in (bands.hit, bands.miss)])
    at = rows.row_of(middles)
    if at[0] == at[1]:
        return
    for row_from_below, text in zip(at.tolist(), _BAND_NAMES, strict=True):
        if 0 <= row_from_below < len(rows) and len(text) <= picture.frame.cells:
            plot.draw_label(len(rows) - 1 - row_from_below, 0, text)


def _draw_cursor(plot: HeatPlot, picture: HeatPicture, cursor: tuple[int, int]) -> None:
    column, row_from_below = cursor
    row, cells = picture.frame.rows - 1 - row_from_below, picture.cells_of(column)
    plot.highlight_cells(cells, CROSS)
    plot.highlight_row(row, CROSS)
    plot.owners[row, cells] |= CURSOR


def _labels(picture: HeatPicture) -> dict[int, float]:
    """Labels by row, counted from the top."""
    rows = picture.columns.rows
    values = label_values_ns(picture.span, picture.frame.rows)
    positions = np.clip(rows.row_of(np.array(values)), 0, len(rows) - 1)
    return {len(rows) - 1 - int(position): value for position, value in zip(positions, values, strict=True)}


def _plot_lines(picture: HeatPicture, plot: HeatPlot, map_style: HeatmapStyle) -> list[Strip]:
    labels, frame, lines = _labels(picture), picture.frame, []
    for row, runs in enumerate(plot.runs()):
        segments = [Segment(text, map_style.of(owner)) for text, owner in runs]
        if frame.axis_width:
            axis = _axis_text(labels.get(row), frame.axis_width, map_style.glyphs)
            segments.insert(0, Segment(axis, map_style.styles["axis"]))
        lines.append(Strip(segments, frame.axis_width + frame.cells))
    return lines


def _axis_text(latency_ns: float | None, width: int, glyphs: Glyphs) -> str:
    if latency_ns is None:
        return glyphs.vertical.rjust(width)
    label = (
        latency_text(latency_ns) if latency_ns < LEAST_MS_NS else tick_label(latency_ns / _NS_PER_MS, Unit.MILLISECONDS)
    )
    return label.rjust(LABEL_WIDTH) + glyphs.tick_left
