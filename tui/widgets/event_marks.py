"""Events on a time axis: those of one kind that follow each other closely share a mark, and labels do not collide."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct

from engine.events import Event, EventKind
from tui.text.safe import cell_text, width_of
from tui.widgets.chart.axes import TimeScale
from tui.widgets.chart.model import ChartFrame, cell_of

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
