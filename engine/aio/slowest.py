"""The slowest I/Os since the last call."""

from __future__ import annotations

import heapq
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

KEPT = 16

SlowIo: TypeAlias = tuple[int, int, int, int, int, int]
"""Latency in ns, target, direction, offset, bytes, CLOCK_MONOTONIC at submission."""


class Slowest:
    """Keeps the few that exceed all others; guarded by the lock of RunStats."""

    def __init__(self) -> None:
        self._kept: list[SlowIo] = []

    def offer(self, io: SlowIo) -> None:
        """Keep an I/O if it is among the slowest."""
        if len(self._kept) < KEPT:
            heapq.heappush(self._kept, io)
        elif io > self._kept[0]:
            heapq.heapreplace(self._kept, io)

    def take(self) -> NDArray[np.uint64]:
        """Return and remove them, slowest first, columns as the raw table slow_load."""
        taken, self._kept = sorted(self._kept, reverse=True), []
        return np.array([(*io[1:], io[0]) for io in taken], np.uint64).reshape(len(taken), 6)
