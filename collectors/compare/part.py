"""A recording or a part of one, as it is typed: `FILE`, `FILE@FROM..TO`, `FILE@epoch2`, `FILE@8`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from collectors.session.reader import SessionReader
from collectors.session.recorded_loads import recorded_loads
from collectors.session.time_format import parse_when
from engine.errors import UsageError
from engine.events import Event
from engine.text import safe_text, short_text

_OFFSET = re.compile(r"\d{1,8}(?:\.\d{1,9})?s?|(?:\d{1,6}h)?(?:\d{1,6}m)?(?:\d{1,8}(?:\.\d{1,9})?s)?", re.ASCII)
_EPOCH = re.compile(r"epoch ?(\d{1,9})", re.ASCII)
_HELP = "write FROM..TO with times, seconds after the start, epochN or words of an event, or epochN alone"

_POINT = re.compile(r"(?:\d{1,9}:)?\d{1,12}(?:\.\d{1,12})?", re.ASCII)
_EPOCHS_SHOWN = 8


class PartText(Struct, frozen=True):
    """What was typed, split at the last @."""

    path: Path
    start: str = ""
    end: str = ""
    epoch: str = ""
    point: str = ""
    """Load of a sweep, such as 8, or 1:8 for that of its second curve."""

    @classmethod
    def parse(cls, text: str) -> PartText:
        """Split a file from the part of it; a file whose name holds an @ is taken as it is.

        Raises:
            UsageError: the part is neither a range, an epoch nor a load.
        """
        path, at, part = text.rpartition("@")
        if not at or not path or Path(text).exists():
            return cls(Path(text))
        return cls.parse_part(Path(path), part)

    @classmethod
    def parse_part(cls, path: Path, part: str) -> PartText:
        """Read what stands behind the @.

        Raises:
            UsageError: it is neither a range, an epoch nor a load.
        """
        start, dots, end = part.partition("..")
        if dots:
            return cls(path, start.strip(), end.strip())
        if _POINT.fullmatch(part):
            return cls(path, point=part)
        if not _EPOCH.fullmatch(part):
            name = safe_text(short_text(str(path), 200))
            raise UsageError(f"{name}: no part {safe_text(short_text(part, 80))!r}: {_HELP}")
        return cls(path, epoch=part)


class TimeRange(Struct, frozen=True):
    """Part of a recording by wall time; intervals that lie within are compared."""

    start_ns: int
    end_ns: int
    words: str
    """Why this part, if it was not typed; else empty."""


class WholeTime(Struct, frozen=True):
    """All of a recording, or of what is kept of a live host, by wall time."""

    name: str
    """Name for messages."""
    start_ns: int
    end_ns: int
    events: Sequence[Event]


def range_of(part: PartText, reader: SessionReader) -> TimeRange:
    """Find the time of a part in its recording: without one, that of the loads in it, else the whole.

    Raises:
        UsageError: a moment is not known, or the part is empty.
    """
    name = safe_text(str(reader.path))
    return range_within(part, WholeTime(name, reader.start_ns, reader.end_ns, reader.events()))


def range_within(part: PartText, whole: WholeTime) -> TimeRange:
    """Find the time of a part in a whole, likewise.

    Raises:
        UsageError: a moment is not known, or the part is empty.
    """
    events = whole.events
    if part.point:
        raise UsageError(f"{whole.name}: no part {part.point!r}: {_HELP}")
    if part.epoch:
        return _epoch_range(part.epoch, whole, events)
    if part.start or part.end:
        start_ns = _moment(part.start, whole, events) if part.start else whole.start_ns
        end_ns = _moment(part.end, whole, events) if part.end else whole.end_ns
        if start_ns >= end_ns:
            raise UsageError(f"{whole.name}: {part.start}..{part.end} ends before it begins")
        return TimeRange(start_ns, end_ns, "")
    loads = recorded_loads(events)
    if not loads:
        return TimeRange(whole.start_ns, whole.end_ns, "all of it")
    end = loads[-1].end
    return TimeRange(loads[0].start.time_ns, whole.end_ns if end is None else end.time_ns, "its load")


def _moment(text: str, whole: WholeTime, events: Sequence[Event]) -> int:
    if match := _EPOCH.fullmatch(text):
        return _epoch(match[1], whole, events)[0]
    if text and _OFFSET.fullmatch(text):
        return parse_when(f"+{text}", whole.start_ns, whole.end_ns)
    try:
        return parse_when(text, whole.start_ns, whole.end_ns)
    except UsageError:
        return _event_moment(text, whole, events)


def _event_moment(text: str, whole: WholeTime, events: Sequence[Event]) -> int:
    """Find the one event with these words."""
    found = [event for event in events if text.casefold() in event.text.casefold()]
    if len(found) == 1:
        return found[0].time_ns
    many = "no event has these words" if not found else f"{len(found)} events have these words"
    raise UsageError(f"{whole.name}: {safe_text(short_text(text, 80))!r} is no time, and {many}: {_HELP}")


def _epoch_range(text: str, whole: WholeTime, events: Sequence[Event]) -> TimeRange:
    match = _EPOCH.fullmatch(text)
    assert match is not None, "parsed before"
    return TimeRange(*_epoch(match[1], whole, events), "")


def _epoch(number: str, whole: WholeTime, events: Sequence[Event]) -> tuple[int, int]:
    """Start and end of an epoch."""
    epochs = _epochs(whole, events)
    if int(number) not in epochs:
        numbers = ", ".join(map(str, list(epochs)[:_EPOCHS_SHOWN])) + (", ..." if len(epochs) > _EPOCHS_SHOWN else "")
        raise UsageError(f"{whole.name}: no epoch {int(number)}: its load has {numbers}")
    return epochs[int(number)]


def _epochs(whole: WholeTime, events: Sequence[Event]) -> dict[int, tuple[int, int]]:
    """Start and end of each epoch that began with a turn, numbered as in `run --json`; a turn may have many knobs."""
    loads = recorded_loads(events)
    if len(loads) != 1:
        held = "no load" if not loads else f"{len(loads)} loads"
        raise UsageError(f"{whole.name}: holds {held}, so epochs are not clear: give times")
    starts = {0: loads[0].start.time_ns}
    for event in loads[0].turns:
        number = event.data.get("epoch")
        if isinstance(number, int):
            starts.setdefault(number, event.time_ns)
    end = loads[0].end
    ends = [*list(starts.values())[1:], whole.end_ns if end is None else end.time_ns]
    return dict(zip(starts, zip(starts.values(), ends, strict=True), strict=True))
