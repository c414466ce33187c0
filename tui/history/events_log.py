"""Events of the session, stored once for charts, timeline and the event list."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from engine.events import Event

MOST_EVENTS = 10_000


class EventHistory:
    """Events by time, bounded; filled by the feed thread and read by the screens."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events: list[Event] = []
        self._seen: set[tuple[int, str]] = set()
        self._version = 0

    @property
    def version(self) -> int:
        """Incremented with every change, so that a screen redraws only then."""
        return self._version

    def add(self, events: Iterable[Event]) -> None:
        """Add new events; a replay that passes a range again adds nothing."""
        with self._lock:
            new = [event for event in events if (event.time_ns, event.text) not in self._seen]
            if not new:
                return
            self._seen.update((event.time_ns, event.text) for event in new)
            self._events = sorted([*self._events, *new], key=lambda event: event.time_ns)
            for dropped in self._events[:-MOST_EVENTS]:
                self._seen.discard((dropped.time_ns, dropped.text))
            self._events = self._events[-MOST_EVENTS:]
            self._version += 1

    def all(self) -> list[Event]:
        """All events, oldest first; the list is never changed afterwards."""
        return self._events
