"""What is kept of completed I/Os: counters to which latencies are added one by one, and the slowest I/Os."""

from __future__ import annotations

import heapq
from dataclasses import astuple, dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from engine.backend.protocol import Cells
from engine.results.histogram import bucket_of

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


READ, WRITE, BOTH = 0, 1, 2


@dataclass(slots=True)
class Tally:
    """I/Os of one target and direction; the order is that of EpochStats.counts."""

    ios: int = 0
    bytes: int = 0
    latency_ns: int = 0
    least_ns: int = 0
    largest_ns: int = 0
    errors: int = 0

    def add(self, length: int, latency_ns: int) -> None:
        """Count one completed I/O."""
        self.least_ns = min(self.least_ns, latency_ns) if self.ios else latency_ns
        self.largest_ns = max(self.largest_ns, latency_ns)
        self.ios += 1
        self.bytes += length
        self.latency_ns += latency_ns

    def row(self) -> tuple[int, ...]:
        """Return the six counts of EpochStats.counts."""
        return astuple(self)


class CellCounter:
    """Sparse latency histograms by target and direction."""

    def __init__(self) -> None:
        self._counts: dict[tuple[int, int, int], int] = {}

    def add(self, target: int, direction: int, latency_ns: int) -> None:
        """Count one latency."""
        cell = (target, direction, bucket_of(latency_ns))
        self._counts[cell] = self._counts.get(cell, 0) + 1

    def cells(self) -> Cells:
        """All cells so far, ascending."""
        ascending = sorted(self._counts.items())
        keys = np.array([cell for cell, _ in ascending], np.uint32).reshape(-1, 3)
        counts = np.array([count for _, count in ascending], np.uint64)
        return keys[:, 0], keys[:, 1].astype(np.uint8), keys[:, 2].astype(np.uint16), counts


class Peaks:
    """Per-second maxima of each target and of all, by direction; for the average peak latency."""

    def __init__(self, targets: int) -> None:
        self._sums = np.zeros((targets + 1, 3, 2), np.uint64)
        self._maxima = [[0, 0, 0] for _ in range(targets + 1)]
        self._second = 0

    def add(self, target: int, direction: int, latency_ns: int, second: int) -> None:
        """Note one latency in the second of the epoch in which it completed."""
        if second != self._second:
            self._sums = self.sums()
            self._maxima = [[0, 0, 0] for _ in self._maxima]
            self._second = second
        for row in (self._maxima[target], self._maxima[-1]):
            row[direction] = max(row[direction], latency_ns)
            row[BOTH] = max(row[BOTH], latency_ns)

    def sums(self) -> NDArray[np.uint64]:
        """Shape (targets + 1, 3, 2): sum of the maxima and how many seconds had any, the present second included."""
        maxima = np.array(self._maxima, np.uint64)
        return np.asarray(self._sums + np.stack([maxima, (maxima > 0).astype(np.uint64)], axis=-1))
