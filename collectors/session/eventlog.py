"""Events of an open file, read once and extended while it grows."""

from __future__ import annotations

from collectors.session import objects
from collectors.session.database import Database
from collectors.session.format import DamageError, unseal
from engine.events import Event

_BATCH = 256


class RecordedEvents:
    """All events, by tick."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._last_id = 0
        self._by_tick: dict[int, tuple[Event, ...]] = {}
        self._damaged = 0
        self._cut = False

    def at(self, tick: int) -> tuple[Event, ...]:
        """Events of one tick."""
        self._top_up()
        return self._by_tick.get(tick, ())

    def all(self) -> list[Event]:
        """All events, by time."""
        self._top_up()
        return sorted((event for events in self._by_tick.values() for event in events), key=lambda event: event.time_ns)

    def notice(self) -> str:
        """Notice about unreadable events, empty if none."""
        if self._cut:
            return "some events cannot be read"
        return f"{self._damaged} damaged events left out" if self._damaged else ""

    def _top_up(self) -> None:
        query = "SELECT id, tick, data FROM events WHERE id > ? ORDER BY id LIMIT ?"
        batch = _BATCH
        while not self._cut:
            try:
                rows = self._database.select(query, self._last_id, batch)
            except DamageError:
                # A damaged page fails the whole batch: read up to it one by one.
                self._cut, batch = batch == 1, 1
                continue
            for number, tick, data in rows:
                self._last_id = number
                self._add(tick, data)
            if len(rows) < batch:
                return

    def _add(self, tick: object, data: object) -> None:
        try:
            if not isinstance(tick, int) or not isinstance(data, bytes):
                raise DamageError("not an event")
            event = objects.event_from_json(objects.load(unseal(data, tick)))
        except DamageError:
            self._damaged += 1
            return
        self._by_tick[tick] = (*self._by_tick.get(tick, ()), event)
