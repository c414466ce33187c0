"""What happened besides the numbers: knob turns, hot-plug, notes, the monitor's own troubles."""

from __future__ import annotations

import time
from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

from engine.replacing import replace


class EventKind(StrEnum):
    """What an event is about; the mark on the charts and the filter of the event list."""

    KNOB = "knob"
    LOAD = "load"
    HOTPLUG = "hotplug"
    NOTE = "note"
    MONITOR = "monitor"
    PATH = "path"
    ALERT = "alert"
    TUNE = "tune"
    BACKGROUND = "background"
    """Work of the kernel beneath the I/O of programs: check, resync, recovery."""


class Event(Struct, frozen=True):
    """One thing that happened, stamped on both clocks so that it lines up with samples."""

    kind: EventKind
    text: str
    time_ns: int
    monotonic_ns: int
    data: Mapping[str, str | int | float | None] = field(default_factory=dict)

    @classmethod
    def now(cls, kind: EventKind, text: str, **data: str | float | None) -> Event:
        """Stamp an event with the present moment."""
        return cls(kind, text, time.time_ns(), time.monotonic_ns(), data)

    def moved_to(self, monotonic_ns: int) -> Event:
        """Return the event with the stamps of another moment, whose monotonic time is known."""
        return replace(self, time_ns=self.time_ns + monotonic_ns - self.monotonic_ns, monotonic_ns=monotonic_ns)
