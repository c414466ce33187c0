"""The position between start and end of a session, with its events; a click seeks."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from msgspec import Struct
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from engine.events import Event
from tui.text.glyphs import Glyphs, glyphs_of
from tui.text.safe import fit
from tui.widgets.painted import replace_changed

_PARTS = ("bar", "played", "position", "event", "peak", "clock")
_CLOCKS_FROM_WIDTH = 40
_SECOND = 1_000_000_000
_DAY_S = 86_400


class Stretch(Struct, frozen=True):
    """A session's time range and current position."""

    start_ns: int
    end_ns: int
    position_ns: int
    events: tuple[Event, ...] = ()
    peaks_ns: tuple[int, ...] = ()

    def cell_of(self, time_ns: int, cells: int) -> int:
        """Cell of a bar for a time, clipped to the bar."""
        length = max(1, self.end_ns - self.start_ns)
        return max(0, min(cells - 1, (time_ns - self.start_ns) * (cells - 1) // length))

    def time_at(self, cell: int, cells: int) -> int:
        """Time at a cell of a bar, clipped to the bar."""
        reach = max(1, cells - 1)
        return self.start_ns + (self.end_ns - self.start_ns) * max(0, min(reach, cell)) // reach


class Timeline(Widget):
    """A bar from start to end in one line, or two with the position as text."""

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    Timeline {
        height: 2;
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"timeline--{part}" for part in _PARTS}

    @dataclass
    class Seek(Message):
        """The operator clicked a time."""

        timeline: Timeline
        time_ns: int

        @property
        def control(self) -> Timeline:
            """The timeline, for `@on` with a selector."""
            return self.timeline

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes=classes)
        self._stretch: Stretch | None = None
        self._drawn: list[Strip] | None = None
        self._drawn_size = Size(0, 0)
        self._dragging = False

    def show(
        self,
        start_ns: int,
        end_ns: int,
        position_ns: int,
        events: Sequence[Event] = (),
        peaks_ns: Sequence[int] = (),
    ) -> None:
        """Take new times; repaints changed lines only."""
        stretch = Stretch(start_ns, end_ns, position_ns, tuple(events), tuple(peaks_ns))
        if stretch == self._stretch:
            return
        self._stretch = stretch
        if self._drawn is None or self._drawn_size != self.size:
            self._drawn = None
            self.refresh()
        elif changed := replace_changed(self._drawn, self._draw(), self.size.width):
            self.refresh(*changed)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Seek to the time under the pointer and follow it until the button is released."""
        self._dragging = True
        self.capture_mouse()
        self._seek(event)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Follow the pointer."""
        if self._dragging:
            self._seek(event)

    def on_mouse_up(self) -> None:
        """Stop following the pointer."""
        self._dragging = False
        self.release_mouse()

    def notify_style_update(self) -> None:
        """Drop lines drawn with another theme."""
        super().notify_style_update()
        self._drawn = None

    def render_line(self, y: int) -> Strip:
        """One line of the last drawing; draws first if there is none."""
        if self._drawn is None or self._drawn_size != self.size:
            self._drawn = self._draw()
        return self._drawn[y] if y < len(self._drawn) else Strip.blank(self.size.width)

    def _seek(self, event: events.MouseEvent) -> None:
        if self._stretch is not None:
            start, cells = bar_position(self._stretch, self.size.width)
            offset = event.get_content_offset_capture(self)
            self.post_message(self.Seek(self, self._stretch.time_at(offset.x - start, cells)))

    def _draw(self) -> list[Strip]:
        self._drawn_size = self.size
        styles = {part: self.get_component_rich_style(f"timeline--{part}") for part in _PARTS}
        if self._stretch is None:
            return [Strip.blank(self.size.width, styles["clock"])] * self.size.height
        glyphs = glyphs_of(self)
        lines = [bar_line(self._stretch, self.size.width, glyphs, styles)]
        text = fit(_position_text(self._stretch, glyphs), self.size.width, glyphs.ellipsis)
        lines.append(Strip([Segment(text, styles["clock"])], self.size.width))
        lines += [Strip.blank(self.size.width, styles["clock"])] * self.size.height
        return lines[: self.size.height]


def bar_position(stretch: Stretch, width: int) -> tuple[int, int]:
    """First cell and length of the bar proper in a width."""
    left = len(_clock(stretch.start_ns, stretch)) + 2 if width >= _CLOCKS_FROM_WIDTH else 1
    return left, max(1, width - 2 * left)


def bar_line(stretch: Stretch, width: int, glyphs: Glyphs, styles: Mapping[str, Style]) -> Strip:
    """Draw the bar with the part played, the peaks, over them the events, and the position."""
    _, cells = bar_position(stretch, width)
    position = stretch.cell_of(stretch.position_ns, cells)
    marks = dict.fromkeys(range(position), (glyphs.played, "played"))
    for peak_ns in stretch.peaks_ns:
        marks[stretch.cell_of(peak_ns, cells)] = (glyphs.heat_lines[2], "peak")
    for event in stretch.events:
        if stretch.start_ns <= event.time_ns <= stretch.end_ns:
            marks[stretch.cell_of(event.time_ns, cells)] = (glyphs.event_marks[event.kind], "event")
    marks[position] = (glyphs.position, "position")
    with_clocks = width >= _CLOCKS_FROM_WIDTH
    before = _clock(stretch.start_ns, stretch) + " " if with_clocks else ""
    after = " " + _clock(stretch.end_ns, stretch) if with_clocks else ""
    runs = [(before, "clock"), (glyphs.bar_start, "bar")]
    runs += [marks.get(cell, (glyphs.unplayed, "bar")) for cell in range(cells)]
    runs += [(glyphs.bar_end, "bar"), (after, "clock")]
    return Strip(Segment.simplify(Segment(text, styles[part]) for text, part in runs if text))


def _clock(time_ns: int, stretch: Stretch) -> str:
    """Local time of day, with the date if the session is longer than a day."""
    form = "%m-%d %H:%M" if stretch.end_ns - stretch.start_ns > _DAY_S * _SECOND else "%H:%M:%S"
    return time.strftime(form, time.localtime(time_ns / _SECOND))


def _position_text(stretch: Stretch, glyphs: Glyphs) -> str:
    """Text of the position: date and time, time since the start, and the last event before it."""
    moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(stretch.position_ns / _SECOND))
    within = f"{_length(stretch.position_ns - stretch.start_ns)} of {_length(stretch.end_ns - stretch.start_ns)}"
    past = [event for event in stretch.events if event.time_ns <= stretch.position_ns]
    last = max(past, key=lambda event: event.time_ns, default=None)
    event_text = f"  {glyphs.event_marks[last.kind]} {last.text}" if last is not None else ""
    return f"{moment}  {within}{event_text}"


def _length(nanoseconds: int) -> str:
    """Hours, minutes and seconds."""
    minutes, seconds = divmod(max(0, nanoseconds) // _SECOND, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"
