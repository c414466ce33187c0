"""The state of the load, for all readers."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from engine.events import Event, EventKind
from engine.running.status import LoadStatus


class StatusStore:
    """The status and the events not yet taken; every member may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._status = LoadStatus()
        self._events: list[Event] = []

    @property
    def status(self) -> LoadStatus:
        """What was last written."""
        return self._status

    def reset(self, status: LoadStatus) -> None:
        """Write a whole status."""
        with self._lock:
            self._status = status

    def change(self, **fields: Any) -> None:  # noqa: ANN401 (the fields of LoadStatus, which `replace` checks)
        """Write some fields and keep the others."""
        with self._lock:
            self._status = replace(self._status, **fields)

    def note(self, kind: EventKind, text: str, data: Mapping[str, str | float | None]) -> None:
        """Add an event, stamped now."""
        event = Event.now(kind, text, **data)
        with self._lock:
            self._events.append(event)

    def take_events(self) -> tuple[Event, ...]:
        """Return the events since the last call; one caller."""
        with self._lock:
            taken, self._events = self._events, []
        return tuple(taken)
