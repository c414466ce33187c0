"""A heat map of latencies over time, with percentile lines, a cursor, a marked range, and zoom both ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from msgspec import Struct
from textual import events
from textual.actions import SkipAction
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip

from collectors.latency.cache_bands import CacheBands
from collectors.latency.heat_map import LatencyRange
from collectors.latency.ticks import LatencyTicks
from engine.events import Event
from tui.text.glyphs import glyphs_of
from tui.widgets.chart.model import ChartFrame, divide
from tui.widgets.heatmap.lines import PARTS, HeatmapStyle, HeatMarks, empty_heat_lines, heat_lines
from tui.widgets.heatmap.model import HeatData, HeatPicture, TimeWindow, draw_picture, zoomed_range
from tui.widgets.painted import Painted

_STYLES = (*PARTS.values(), "axis", "cross", "cursor", "marked", "hint")
_PAGE = 10


class Spot(Struct, frozen=True):
    """The cursor: the end of its column and a latency in its row."""

    time_ns: int
    latency_ns: float


class HeatMap(Painted, can_focus=True):
    """I/Os by time and latency; cell density is their number, and a single I/O is visible."""

    TAKES_ARROWS = True
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"heat--{part}" for part in _STYLES}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "across(-1)", "Cursor earlier", show=False, id="heat-earlier"),
        Binding("right", "across(1)", "Cursor later", show=False, id="heat-later"),
        Binding("shift+left", f"across(-{_PAGE})", "Cursor much earlier", show=False, id="heat-much-earlier"),
        Binding("shift+right", f"across({_PAGE})", "Cursor much later", show=False, id="heat-much-later"),
        Binding("up", "along(1)", "Cursor to slower I/Os", show=False, id="heat-slower"),
        Binding("down", "along(-1)", "Cursor to faster I/Os", show=False, id="heat-faster"),
        Binding("escape", "put_away", "Remove the cursor", show=False, id="heat-cursor-away"),
    ]

    @dataclass
    class Moved(Message):
        """The cursor moved to another interval, or was removed."""

        heat_map: HeatMap

        @property
        def control(self) -> HeatMap:
            """The heat map, for `@on` with a selector."""
            return self.heat_map

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes=classes)
        self._data: HeatData | None = None
        self._picture: HeatPicture | None = None
        self.window = TimeWindow()
        """The time window."""
        self._zoom: LatencyRange | None = None
        self._spot: Spot | None = None
        self._mark_ns: tuple[int, int] | None = None
        self._lines = True
        self._bands: CacheBands | None = None
        self._style_cache: HeatmapStyle | None = None
        self._hint = "waiting for data"

    # ------------------------------------------------------------------ figures

    def show(
        self, ticks: LatencyTicks, series: tuple[str, ...], events: Sequence[Event], end_ns: int, span_ns: int
    ) -> None:
        """Take new data: all intervals up to `end_ns`; the last `span_ns` are shown unless zoomed."""
        self.window.follow(end_ns, span_ns)
        start_ns, end_ns = self.window.bounds()
        self._data = HeatData(ticks.between(0, self.window.newest_ns), series, tuple(events), start_ns, end_ns)
        self.repaint()

    def show_bands(self, bands: CacheBands | None) -> None:
        """Mark the latencies of hits and misses of a cache, or none."""
        if bands != self._bands:
            self._bands = bands
            self.repaint()

    def show_nothing(self, why: str) -> None:
        """Set the text shown without data."""
        if self._data is not None or why != self._hint:
            self._data = self._picture = self._spot = None
            self._hint = why
            self.repaint()

    def start_over(self) -> None:
        """Reset scale and zoom of the latencies for another subject or part; time, cursor and mark are kept."""
        self._zoom = self._picture = None

    @property
    def interval_ns(self) -> tuple[int, int] | None:
        """Begin and end of the interval under the cursor."""
        if self._picture is None or self._spot is None:
            return None
        column = self._picture.column_at(self._spot.time_ns)
        if column is None:
            return None
        return int(self._picture.columns.starts_ns[column]), int(self._picture.columns.ends_ns[column])

    @property
    def marked_ns(self) -> tuple[int, int] | None:
        """Begin and end of the marked range: from the mark to the cursor, both inclusive, or to now."""
        if self._mark_ns is None or self._data is None:
            return None
        other = self.interval_ns or (self._data.end_ns, self._data.end_ns)
        return min(self._mark_ns[0], other[0]), max(self._mark_ns[1], other[1])

    @property
    def shown_ns(self) -> tuple[int, int]:
        """Begin and end of what is shown."""
        return self.window.bounds()

    # ------------------------------------------------------------------ view

    def toggle_lines(self) -> None:
        """Toggle percentile lines."""
        self._lines = not self._lines
        self.repaint()

    def toggle_mark(self) -> None:
        """Begin a range at the cursor, or at now; or clear the current one."""
        if self._mark_ns is None and self._data is not None:
            self._mark_ns = self.interval_ns or (self._data.end_ns, self._data.end_ns)
        else:
            self._mark_ns = None
        self.repaint()

    def zoom_time(self, factor: float) -> None:
        """Show less (factor below 1) or more time, around the cursor or up to now."""
        self.window.zoom(factor, None if self._spot is None else self._spot.time_ns)
        self._redraw_window()

    def zoom_latency(self, factor: float) -> None:
        """Show a narrower (factor below 1) or wider range of latencies, around the cursor."""
        if self._picture is None:
            return
        centre_ns = None if self._spot is None else self._spot.latency_ns
        wanted = zoomed_range(self._picture.span, centre_ns, factor)
        fitted = self._zoom is None and factor > 1
        self._zoom = None if fitted or wanted.high_ns / wanted.low_ns > 1e7 else wanted
        self.repaint()

    def zoom_off(self) -> None:
        """Reset both zooms."""
        self._zoom = None
        self.window.reset()
        self._redraw_window()

    # ------------------------------------------------------------------ cursor

    def go_to(self, time_ns: int, latency_ns: float | None = None) -> None:
        """Move the cursor to a time, scrolling if needed."""
        self.window.reach(time_ns)
        self._spot = Spot(time_ns, latency_ns or (0.0 if self._spot is None else self._spot.latency_ns))
        self._redraw_window()
        self._settle()

    def action_across(self, columns: int) -> None:
        """Move the cursor in time; it starts at the newest."""
        picture = self._picture
        if picture is None or self._data is None or not len(picture.columns):
            return
        if not len(self._data.ticks):  # Newer than the picture, which is drawn with the next frame.
            return
        last = len(picture.columns) - 1
        column = last + 1 if self._spot is None else picture.column_at(self._spot.time_ns) or 0
        wanted = column + columns
        earliest_ns = int(self._data.ticks.times_ns[0])
        if wanted < 0 and earliest_ns < int(picture.columns.ends_ns[0]):
            self.go_to(max(earliest_ns, int(picture.columns.ends_ns[0]) + wanted * self._step_ns(picture)))
        elif wanted > last and self.window.is_fixed:
            self.go_to(int(picture.columns.ends_ns[last]) + (wanted - last) * self._step_ns(picture))
        else:
            self._put(min(max(wanted, 0), last))

    def action_along(self, rows: int) -> None:
        """Move the cursor in latency; it starts at the peak of the newest."""
        picture = self._picture
        if picture is None or not len(picture.columns):
            return
        if self._spot is None:
            self._put(len(picture.columns) - 1)
            return
        row = min(max(self._row(picture, self._spot) + rows, 0), picture.frame.rows - 1)
        self._spot = Spot(self._spot.time_ns, _middle_ns(picture, row))
        self.repaint()

    def action_put_away(self) -> None:
        """Remove the cursor; without one the key goes to the screen."""
        if self._spot is None:
            raise SkipAction
        self._spot = None
        self.repaint()
        self.post_message(self.Moved(self))

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the clicked cell."""
        offset, picture = event.get_content_offset(self), self._picture
        if offset is None or picture is None:
            return
        cell, row = offset.x - picture.frame.axis_width, picture.frame.rows - offset.y
        if not (0 <= cell < picture.frame.cells and 0 <= row < picture.frame.rows):
            return
        column = int(picture.column_of_cell[cell])
        if column >= 0:
            self._spot = Spot(int(picture.columns.ends_ns[column]), _middle_ns(picture, row))
            self._settle()

    def _put(self, column: int) -> None:
        """Move the cursor to a column, initially at its peak."""
        picture = self._picture
        assert picture is not None, "asked only with one"
        time_ns = int(picture.columns.ends_ns[column])
        latency_ns = float(picture.columns.peaks_ns[column]) if self._spot is None else self._spot.latency_ns
        self._spot = Spot(time_ns, latency_ns)
        self._settle()

    def _settle(self) -> None:
        self.repaint()
        self.post_message(self.Moved(self))

    def _row(self, picture: HeatPicture, spot: Spot) -> int:
        """Row of the cursor from below, clipped to the plot."""
        row = int(picture.columns.rows.row_of(np.array([spot.latency_ns]))[0])
        return min(max(row, 0), picture.frame.rows - 1)

    def _step_ns(self, picture: HeatPicture) -> int:
        """Length of a column."""
        columns = picture.columns
        return max(1, int((columns.ends_ns[-1] - columns.ends_ns[0]) // max(len(columns) - 1, 1)))

    # ------------------------------------------------------------------ drawing

    def draw_lines(self) -> list[Strip]:
        """Draw all lines from top to bottom."""
        map_style, frame = self._cached_style(), divide(self.size)
        if self._data is None or frame.cells < 1 or frame.rows < 1:
            return empty_heat_lines(self._hint if self._data is None else "", self.size, map_style)
        self._picture = picture = self._picture_of(self._data, frame)
        marks = HeatMarks(self._cursor(picture), self.marked_ns, self._lines, self._bands)
        return heat_lines(self._data, picture, marks, map_style)

    def invalidate_style(self) -> None:
        """Clear cached styles."""
        self._style_cache = None

    def _picture_of(self, data: HeatData, frame: ChartFrame) -> HeatPicture:
        """Bin the data; the former picture is taken while only what is drawn over it changes."""
        before = self._picture
        if before is not None and before.frame != frame:
            before = None
        if before is not None and (before.data, before.zoomed) == (data, self._zoom):
            return before
        return draw_picture(data, frame, before, self._zoom)

    def _cursor(self, picture: HeatPicture) -> tuple[int, int] | None:
        column = None if self._spot is None else picture.column_at(self._spot.time_ns)
        return None if column is None or self._spot is None else (column, self._row(picture, self._spot))

    def _redraw_window(self) -> None:
        if self._data is not None:
            start_ns, end_ns = self.window.bounds()
            self._data = HeatData(self._data.ticks, self._data.series, self._data.events, start_ns, end_ns)
            self.repaint()

    def _cached_style(self) -> HeatmapStyle:
        """Styles and marks, looked up once per theme and focus."""
        if self._style_cache is None:
            styles = {part: self.get_component_rich_style(f"heat--{part}") for part in _STYLES}
            for part in ("cross", "cursor", "marked"):
                styles[part] = self.get_component_rich_style(f"heat--{part}", partial=True)
            self._style_cache = HeatmapStyle(glyphs_of(self), styles)
        return self._style_cache


def _middle_ns(picture: HeatPicture, row: int) -> float:
    rows = picture.columns.rows
    return float(rows.low_ns[row] + rows.high_ns[row]) / 2
