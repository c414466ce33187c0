"""Tick rows of an open file by number, each checked before use."""

from __future__ import annotations

from dataclasses import dataclass

from collectors.session.database import Database
from collectors.session.format import MAX_PARTS, DamageError, unseal

_SMALLEST_ROW_BYTES = 16


@dataclass(frozen=True, slots=True)
class StoredTick:
    """One row with a valid checksum."""

    tick: int
    time_ns: int
    monotonic_ns: int
    base: int
    """The tick it is encoded against; itself for a full one."""
    data: bytes


class TickTable:
    """Ticks 0 to `count` - 1, some of which may be damaged."""

    def __init__(self, database: Database, clock_ns: int) -> None:
        self._database = database
        self._clock_ns = clock_ns
        self._salvaged: int | None = None

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
        return 0 if last is None else min(last + 1, self._most())

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
