"""The parts of a session that can be compared: epochs of loads, loads, the time between notes, all of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from collectors.compare.part import PartText, WholeTime, range_within
from collectors.session.recorded_loads import RecordedLoad, recorded_loads
from collectors.session.time_format import clock_text
from engine.events import Event, EventKind
from engine.text import safe_text, short_text

_TITLE = 46
"""Most characters of a note or a turn in a title."""


class TimePart(Struct, frozen=True):
    """A range of wall time."""

    title: str
    start_ns: int
    end_ns: int | None
    """None while it goes on."""
    kind: str = ""
    """"epoch", "load", "notes", "whole" or "typed"; with the start it is the same part when it has grown."""

    @property
    def key(self) -> tuple[str, int]:
        """What stays the same while it grows."""
        return self.kind, self.start_ns

    @property
    def times(self) -> str:
        """Ends of the part by the clock."""
        return f"{clock_text(self.start_ns)}-{'now' if self.end_ns is None else clock_text(self.end_ns)}"


class FilePart(Struct, frozen=True):
    """What was typed as an argument of `lunscope compare`."""

    text: str

    @property
    def title(self) -> str:
        """The text itself."""
        return self.text


Part = TimePart | FilePart


def offered_parts(whole: WholeTime, *, live: bool) -> list[TimePart]:
    """Parts to choose from, the newest first; a live one without an end goes on."""
    end_ns = None if live else whole.end_ns
    loads = recorded_loads(whole.events)
    parts = [part for number, load in enumerate(loads) for part in _of_load(number, len(loads), load, end_ns)]
    parts += _between_notes(whole.events, end_ns)
    everything = TimePart("all of it", whole.start_ns, end_ns, "whole")
    found = [part for part in parts if part.end_ns is None or part.end_ns > max(part.start_ns, whole.start_ns)]
    return [*sorted(found, key=lambda part: -part.start_ns), everything]


def default_parts(parts: Sequence[TimePart], least_ns: int) -> tuple[TimePart, TimePart] | None:
    """Choose the newest epoch of the load as B and the one before as A; without epochs the time between notes.

    Those that ended within `least_ns` are passed over, if others are left: where a knob was turned several times in
    succession, what lies between holds too few intervals to be compared.
    """
    for kind in ("epoch", "notes"):
        found = [part for part in parts if part.kind == kind]
        lasting = [part for part in found if part.end_ns is None or part.end_ns - part.start_ns >= least_ns]
        newest = lasting if len(lasting) > 1 else found
        if len(newest) > 1:
            return newest[1], newest[0]
    return None


def typed_part(text: str, whole: WholeTime) -> TimePart:
    """Read a range as `lunscope compare` takes it behind the @.

    Raises:
        UsageError: it is not known, or empty.
    """
    found = range_within(PartText.parse_part(Path(whole.name), text.strip()), whole)
    return TimePart(short_text(safe_text(text.strip()), _TITLE), found.start_ns, found.end_ns, "typed")


def _of_load(number: int, loads: int, load: RecordedLoad, end_ns: int | None) -> Iterator[TimePart]:
    over_ns = end_ns if load.end is None else load.end.time_ns
    name = "load" if loads == 1 else f"load {number + 1}"
    turns: dict[int, Event] = {}
    for event in load.turns:
        epoch = event.data.get("epoch")
        if isinstance(epoch, int):
            turns.setdefault(epoch, event)
    yield TimePart(name, load.start.time_ns, over_ns, "load")
    starts = [(0, load.start.time_ns, "as started"), *((epoch, one.time_ns, one.text) for epoch, one in turns.items())]
    ends = [*(start for _, start, _ in starts[1:]), over_ns]
    prefix = "" if loads == 1 else f"{name} "
    for (epoch, start_ns, words), until_ns in zip(starts, ends, strict=True):
        yield TimePart(f"{prefix}epoch {epoch}: {_short(words)}", start_ns, until_ns, "epoch")


def _between_notes(events: Sequence[Event], end_ns: int | None) -> Iterator[TimePart]:
    notes = [event for event in events if event.kind is EventKind.NOTE]
    ends = [*(note.time_ns for note in notes[1:]), end_ns]
    for note, until_ns in zip(notes, ends, strict=False):
        yield TimePart(f"from note: {_short(note.text)}", note.time_ns, until_ns, "notes")


def _short(text: str) -> str:
    return short_text(safe_text(text), _TITLE)
