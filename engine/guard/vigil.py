"""Looks again and again at what a running load writes to.

A claimed device can be taken by nobody, but its bytes can: by another path to the LUN, another loop device, the file
behind it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from engine.guard.census import Census
from engine.guard.target import OpenTarget

EVERY_S = 1.0
"""How often it looks, where a look takes little time."""
_PAUSES_PER_LOOK = 100
"""At least so many times as long as a look takes is the pause after it: hosts with thousands of disks take seconds."""


class Vigil:
    """Knows when the next look is due."""

    def __init__(self) -> None:
        self._next_s = time.monotonic() + EVERY_S

    def look(self, written: Sequence[OpenTarget]) -> None:
        """Make sure that nobody has begun to use targets that are being written, if it is time to look.

        Raises:
            RefusedError: as OpenTarget.refuse_new_use.
        """
        began_s = time.monotonic()
        if not written or began_s < self._next_s:
            return
        census = Census()
        for target in written:
            target.refuse_new_use(census)
        ended_s = time.monotonic()
        self._next_s = ended_s + max(EVERY_S, _PAUSES_PER_LOOK * (ended_s - began_s))
