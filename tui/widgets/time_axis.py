"""The time axis line: clock labels, and event marks, of which those of one kind that are close share one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from engine.events import Event, EventKind
from tui.text.glyphs import Glyphs
from tui.text.safe import cell_text, width_of
from tui.widgets.chart.axes import TimeScale, clock_ticks
from tui.widgets.chart.model import ChartFrame, cell_of

_CELLS_PER_CLOCK = 12


class TimeAxisStyle(Struct, frozen=True):
    """Marks and styles of the line."""

    glyphs: Glyphs
    axis: Style
    event: Style


class TimeAxis(Struct, frozen=True, eq=False):
    """The events in sight, and the line below the plot."""

    asked: tuple[object, ...]
    """What both depend on."""
    groups: Sequence[EventGroup]
    line: Strip


def time_axis(
    events: Sequence[Event],
    scale: TimeScale,
    frame: ChartFrame,
    axis_style: TimeAxisStyle,
    note: str,
    *,
    before: TimeAxis | None,
) -> TimeAxis:
    """Group the events and draw the line, or give those of `before`, while time and events stay the same."""
    asked = events, scale, frame, axis_style, note
    if before is not None and before.asked == asked:
        return before
    groups = groups_in_sight(events, scale, frame)
    return TimeAxis(asked, groups, time_axis_line(scale, frame, groups, axis_style, note))


def time_axis_line(
    scale: TimeScale, frame: ChartFrame, groups: Sequence[EventGroup], axis_style: TimeAxisStyle, note: str = ""
) -> Strip:
    """Draw clock labels and event marks below the plot; `note` stands below the labels of the values."""
    marks = mark_cells(groups, frame.cells, axis_style.glyphs.event_marks)
    chars = _clock_chars(scale, frame, marks, axis_style.glyphs)
    corner = (note + axis_style.glyphs.corner).rjust(frame.axis_width)
    segments = [Segment(corner, axis_style.axis)] if frame.axis_width else []
    start = 0
    for cell, mark in sorted(marks.items()):
        if cell > start:
            segments.append(Segment("".join(chars[start:cell]), axis_style.axis))
        segments.append(Segment(mark, axis_style.event))
        start = cell + 1
    if start < frame.cells:
        segments.append(Segment("".join(chars[start:]), axis_style.axis))
    return Strip(segments, frame.axis_width + frame.cells)


def _clock_chars(scale: TimeScale, frame: ChartFrame, marks: Mapping[int, str], glyphs: Glyphs) -> list[str]:
    """Write clock labels where no event mark would hide a part of them."""
    chars = [glyphs.horizontal] * frame.cells
    free_from = 0
    for time_ns, label in clock_ticks(scale.start_ns, scale.end_ns, frame.cells // _CELLS_PER_CLOCK):
        cell = cell_of(scale, time_ns, frame)
        end = cell + 1 + len(label)
        if free_from <= cell and end < frame.cells and marks.keys().isdisjoint(range(cell, end + 1)):
            chars[cell:end] = [glyphs.tick_below, *label]
            free_from = end + 1
    return chars


REACH_CELLS = 3
"""Events of one kind at most this far apart share a mark."""
MOST_CELLS = 12
"""Width of a group at most: beyond it, one mark would say too little about the time."""
LONGEST_LABEL = 30
_LABEL_ROWS = 3
_ROWS_PER_LABEL = 3
_KINDS = {EventKind.KNOB: "knob turn", EventKind.HOTPLUG: "hot-plug", EventKind.PATH: "path event"}

FreeCells = Callable[[int, int], int]
"""Maps a row and a cell to the number of cells from there on that a label may use."""


class EventGroup(Struct, frozen=True):
    """Events of one kind that share a mark, in order of time."""

    cell: int
    """Cell of the first."""
    events: tuple[Event, ...]

    @property
    def kind(self) -> EventKind:
        """Kind of all of them."""
        return self.events[0].kind

    @property
    def text(self) -> str:
        """What happened; for several events the number and the kind, or what all of them say."""
        texts = {event.text for event in self.events}
        what = texts.pop() if len(texts) == 1 else _KINDS.get(self.kind, self.kind.value)
        return cell_text(what if len(self.events) == 1 else f"{len(self.events)} x {what}")


class Label(Struct, frozen=True):
    """Text of a group and where it begins."""

    row: int
    cell: int
    text: str


def groups_in_sight(events: Sequence[Event], scale: TimeScale, frame: ChartFrame) -> list[EventGroup]:
    """Group the events within a time scale, in order of their cells."""
    seen = [event for event in events if scale.start_ns <= event.time_ns < scale.end_ns]
    seen.sort(key=lambda event: event.time_ns)
    open_groups: dict[EventKind, tuple[int, int, list[Event]]] = {}
    closed: list[EventGroup] = []
    for event in seen:
        cell = cell_of(scale, event.time_ns, frame)
        first, last, members = open_groups.get(event.kind, (cell, cell, []))
        if cell - last > REACH_CELLS or cell - first >= MOST_CELLS:
            closed.append(EventGroup(first, tuple(members)))
            first, members = cell, []
        open_groups[event.kind] = first, cell, [*members, event]
    closed += [EventGroup(first, tuple(members)) for first, _, members in open_groups.values()]
    return sorted(closed, key=lambda group: (group.cell, group.events[0].time_ns))


@functools.lru_cache(1024)
def shortened(text: str, width: int, ellipsis: str) -> str:
    """Cut a text after a whole word to at most `width` cells; empty if less than half of it fits."""
    if width_of(text) <= width:
        return text
    words = text.split(" ")
    for count in range(len(words) - 1, 0, -1):
        cut = " ".join(words[:count]) + ellipsis
        if width_of(cut) <= width:
            return cut if 2 * width_of(cut) >= width_of(text) else ""
    return ""


def place_labels(groups: Sequence[EventGroup], rows: int, free: FreeCells, ellipsis: str) -> Iterator[Label]:
    """Place the label of each group beside its line: in the first row with room for all of it, else shortened.

    A label may run over the lines of later events, never over a curve or another label; one without room for a word
    is left out.
    """
    taken: dict[int, int] = {}
    usable = range(max(1, min(_LABEL_ROWS, rows // _ROWS_PER_LABEL)))
    for group in groups:
        start = group.cell + 1
        rooms = {row: free(row, start) for row in usable if taken.get(row, 0) <= start}
        if not rooms:
            continue
        wanted = group.text
        length = min(width_of(wanted), LONGEST_LABEL)
        row = next((row for row, room in rooms.items() if length <= room), max(rooms, key=rooms.__getitem__))
        text = shortened(wanted, min(LONGEST_LABEL, rooms[row]), ellipsis)
        if text and width_of(text) == len(text):
            taken[row] = start + len(text) + 1
            yield Label(row, start, text)


def mark_cells(groups: Sequence[EventGroup], cells: int, marks: Mapping[EventKind, str]) -> dict[int, str]:
    """Characters of the marks by cell: a glyph, and for several events their number where it fits before the next."""
    shown: dict[int, str] = {group.cell: marks[group.kind] for group in groups}
    for group in groups:
        count = str(len(group.events)) if len(group.events) > 1 else ""
        columns = range(group.cell + 1, group.cell + 1 + len(count))
        if columns.stop <= cells and shown.keys().isdisjoint(columns):
            shown.update(zip(columns, count, strict=True))
    return shown
