"""Where in a session file a moment is."""

from __future__ import annotations

import statistics
from itertools import chain, pairwise

from collectors.session.format import DamageError
from collectors.session.ticks import StoredTick, TickTable

_INTERVALS_LOOKED_AT = 16


class TickTimeline:
    """Ticks by time, past those that are damaged; `first` is one that can be read."""

    def __init__(self, ticks: TickTable, first: int) -> None:
        self._ticks = ticks
        self.first = first
        self.start_ns = ticks.get(first).time_ns

    def last(self) -> StoredTick:
        """Return the last stored tick."""
        return self._probe(self.first, self._ticks.count() - 1, self._ticks.count() - 1) or self._ticks.get(self.first)

    def at(self, time_ns: int) -> int:
        """Return the last stored tick at or before a wall time, the first of all if there is none.

        Where the wall clock was set back a time happens twice, and this is one of them.
        """
        low, high = self.first, self._ticks.count() - 1
        while low < high:
            probe = self._probe(low, (low + high + 1) // 2, high)
            if probe is None:
                break
            if probe.time_ns <= time_ns:
                low = probe.tick
            else:
                high = probe.tick - 1
        return low

    def interval_s(self) -> float:
        """Usual time between the first ticks, in seconds; 1 where there is only one."""
        times = []
        for tick in range(self.first, min(self.first + _INTERVALS_LOOKED_AT, self._ticks.count())):
            try:
                times.append(self._ticks.get(tick).monotonic_ns)
            except DamageError:
                break
        steps = [after - before for before, after in pairwise(times) if after > before]
        return statistics.median(steps) / 1e9 if steps else 1.0

    def _probe(self, above: int, middle: int, high: int) -> StoredTick | None:
        """Return a stored tick above one and up to another, near the middle."""
        for tick in chain(range(middle, above, -1), range(middle + 1, high + 1)):
            try:
                return self._ticks.get(tick)
            except DamageError:
                continue
        return None
