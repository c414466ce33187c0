"""Rows of an open session file, each checked before use: ticks, events, and ranges that are unreadable."""

from __future__ import annotations

from msgspec import Struct

from collectors.session import objects
from collectors.session.database import Database
from collectors.session.format import MAX_PARTS, TIME_END_NS, DamageError, unseal
from collectors.session.time_format import clock_text
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


_SMALLEST_ROW_BYTES = 16


class StoredTick(Struct, frozen=True):
    """One row with a valid checksum."""

    tick: int
    time_ns: int
    monotonic_ns: int
    base: int
    """The tick it is encoded against; itself for a full one."""
    data: bytes

    def __post_init__(self) -> None:
        """Refuse times that no clock shows.

        Raises:
            DamageError: there are some.
        """
        if not (0 <= self.time_ns < TIME_END_NS and 0 <= self.monotonic_ns < TIME_END_NS):
            raise DamageError(f"tick {self.tick} has a time that no clock shows")


class TickTable:
    """Ticks 0 to `count` - 1, some of which may be damaged."""

    def __init__(self, database: Database, clock_ns: int) -> None:
        self._database = database
        self._clock_ns = clock_ns
        self._salvaged: int | None = None
        self._allowed = 0
        """Most ticks that a file of the size it last had can have; a recorded file only grows."""

    @property
    def cut_off(self) -> bool:
        """Whether the file ends before its last tick."""
        return self._salvaged is not None

    def count(self) -> int:
        """Count of ticks, readable or not; grows while the file is being written."""
        if self._salvaged is not None:
            return self._salvaged
        try:
            [(last,)] = self._database.select("SELECT max(tick) FROM ticks")
        except DamageError:
            self._salvaged = self._find_end()
            return self._salvaged
        if last is None:
            return 0
        if last >= self._allowed:
            self._allowed = self._most()
        return int(min(last + 1, self._allowed))

    def get(self, tick: int) -> StoredTick:
        """One tick.

        Raises:
            DamageError: it is missing or damaged.
        """
        query = "SELECT time_ns, drift_ns, base, parts, data FROM ticks WHERE tick = ?"
        match self._database.select(query, tick):
            case [(int(time_ns), int(drift_ns), int() | None as base, int(parts), bytes(head))]:
                sealed = head + self._parts(tick, parts) if parts else head
                data = unseal(sealed, tick, time_ns, drift_ns, -1 if base is None else base)
                monotonic_ns = time_ns - drift_ns - self._clock_ns
                return StoredTick(tick, time_ns, monotonic_ns, tick - 1 if base is None else base, data)
            case _:
                raise DamageError(f"tick {tick} is missing")

    def _parts(self, tick: int, count: int) -> bytes:
        if not 0 < count <= MAX_PARTS:
            raise DamageError(f"tick {tick} has no such parts")
        first = tick * MAX_PARTS
        query = "SELECT data FROM parts WHERE id >= ? AND id < ?"
        parts = [row[0] for row in self._database.select(query, first, first + count)]
        if len(parts) != count or not all(isinstance(part, bytes) for part in parts):
            raise DamageError(f"tick {tick} has no such parts")
        return b"".join(parts)

    def readable(self, tick: int) -> bool:
        """Whether the row of a tick is undamaged."""
        try:
            self.get(tick)
        except DamageError:
            return False
        return True

    def _most(self) -> int:
        """Upper bound from the file size, whatever the number of its last tick."""
        return self._database.size_bytes() // _SMALLEST_ROW_BYTES

    def _find_end(self) -> int:
        """Return the end of a truncated file: pages fill in order, so readable ticks come first."""
        known, beyond = 0, 1
        while beyond < self._most() and self.readable(beyond):
            known, beyond = beyond, beyond * 2
        while beyond - known > 1:
            middle = (known + beyond) // 2
            known, beyond = (middle, beyond) if self.readable(middle) else (known, middle)
        return known + 1


_TICKS_BACK = 100


class DamageLog:
    """Unreadable ranges found so far, each from the damaged tick to the first that does not depend on it."""

    def __init__(self, ticks: TickTable) -> None:
        self._ticks = ticks
        self._spans: dict[int, int] = {}

    def covers(self, tick: int) -> bool:
        """Whether a tick is known to be unreadable."""
        return any(start <= tick < end for start, end in self._spans.items())

    def past(self, tick: int) -> int:
        """Return the first tick from this one on that may be readable."""
        return max((end for start, end in self._spans.items() if start <= tick < end), default=tick)

    def add(self, culprit: int) -> None:
        """Mark a tick as damaged, together with those encoded against it."""
        lost = {culprit}
        end = culprit + 1
        count = self._ticks.count()
        while end < count:
            try:
                base = self._ticks.get(end).base
            except DamageError:
                base = culprit
            if base not in lost and not self.covers(base):
                break
            lost.add(end)
            end += 1
        self._spans[culprit] = end

    def notice(self) -> str:
        """Notice in one line, empty if nothing was found."""
        if not self._spans:
            return ""
        first = min(self._spans)
        lost = sum(end - start for start, end in self._spans.items())
        ticks = "1 tick" if lost == 1 else f"{lost} ticks"
        return f"damaged at {self._time_before(first)}: {ticks} unreadable, the rest is shown"

    def _time_before(self, tick: int) -> str:
        for before in range(tick, max(-1, tick - _TICKS_BACK), -1):
            try:
                return clock_text(self._ticks.get(before).time_ns)
            except DamageError:
                continue
        return "the start"
