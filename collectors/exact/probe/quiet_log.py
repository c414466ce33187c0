"""A log that no reader can fill: each kind of line once in a while, with the number of those left out."""

from __future__ import annotations

import time
from collections.abc import Callable

EVERY_S = 60.0


class QuietLog:
    """Passes the first line of each kind on, then one per minute; the kind is what is before the first colon."""

    def __init__(self, log: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._log, self._clock = log, clock
        self._from_s: dict[str, float] = {}
        self._left_out: dict[str, int] = {}

    def __call__(self, text: str) -> None:
        """Log a line, or count it."""
        kind, now_s = text.partition(":")[0], self._clock()
        if now_s < self._from_s.get(kind, 0.0):
            self._left_out[kind] = self._left_out.get(kind, 0) + 1
            return
        left_out = self._left_out.pop(kind, 0)
        self._from_s[kind] = now_s + EVERY_S
        self._log(f"{text} ({left_out:,} more of this kind before it)" if left_out else text)
