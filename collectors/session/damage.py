"""Unreadable ranges of a file, and the notice about them."""

from __future__ import annotations

from collectors.session.format import DamageError
from collectors.session.ticks import TickTable
from collectors.session.time_format import clock_text

_LOOK_BACK = 100


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
        for before in range(tick, max(-1, tick - _LOOK_BACK), -1):
            try:
                return clock_text(self._ticks.get(before).time_ns)
            except DamageError:
                continue
        return "the start"
