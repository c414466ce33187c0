"""Who is waited for: one host that does not answer is named, and does not silence the others."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

PATIENCE_S = 5.0
"""A host that does not answer for as long is named; the picture no longer waits for one without a sample."""
UNGREETED_S = 10.0
"""How long the picture of the others waits for a host whose agent has not answered yet: ssh has its own limits."""

Say = Callable[[str], None]
"""Takes one line for the operator."""


def waiting_words(waiting: Mapping[str, str], others: int, they: str) -> str:
    """Name one of those that are waited for with the reason, and how many there are beside: `11 others are shown`."""
    name, why = next(iter(waiting.items()))
    more = f" (and {len(waiting) - 1} more hosts)" if len(waiting) > 1 else ""
    rest = f"; {others} {'other is' if others == 1 else 'others are'} {they}" if others else ""
    return f"{name} {why}{more}{rest}"


class WaitWords:
    """Says who is waited for, once every `PATIENCE_S` as long as somebody is."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._next_s = time.monotonic() + PATIENCE_S

    def note(self, waiting: Mapping[str, str], others: int, they: str, *, at_once: bool = False) -> None:
        """Note who is waited for now, and say so if it is time or `at_once`; called often."""
        now_s = time.monotonic()
        if waiting and (at_once or now_s >= self._next_s):
            self._next_s = now_s + PATIENCE_S
            self._say(waiting_words(waiting, others, they))
