"""Messages of a headless command on standard error about outstanding I/Os and calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from msgspec import Struct

from engine.backend.outstanding import Outstanding, waiting_text
from engine.replacing import replace

_MOST_S = 60.0
"""Longest time between two lines about the same wait."""


class _Named(Struct):
    waits: Outstanding
    """The most I/Os there were, and the oldest of them: some come back before others."""
    next_s: float
    pause_s: float = 2.0


class WaitLines:
    """Reports waits when they begin and end, and in between after 2, 4, 8 ... seconds."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._named: dict[tuple[str, str], _Named] = {}

    def show(self, waits: Iterable[Outstanding]) -> None:
        """Report waits that are new, over or due again; `waits` are the current ones."""
        now_s, found = time.monotonic(), {(each.target, each.call): each for each in waits}
        due = [each for key, each in found.items() if self._is_due(key, each, now_s)]
        if due:
            self._say(waiting_text(due))
        for key in [key for key in self._named if key not in found]:
            over = self._named.pop(key).waits
            self._say(f"{over.what} {'returned' if over.call else 'came back'} after {over.oldest_s():.1f} s")

    def _is_due(self, key: tuple[str, str], waits: Outstanding, now_s: float) -> bool:
        named = self._named.get(key)
        if named is None:
            self._named[key] = _Named(waits, now_s + 2.0)
            return True
        before = named.waits
        named.waits = replace(waits, ios=max(waits.ios, before.ios), since_ns=min(waits.since_ns, before.since_ns))
        if now_s < named.next_s:
            return False
        named.pause_s = min(2 * named.pause_s, _MOST_S)
        named.next_s = now_s + named.pause_s
        return True
