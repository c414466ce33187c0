"""Which devices the in-flight sampler watches, and its sums in the DISK table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from collectors.kernel.identity import sysfs_name
from collectors.model import Rows, Table
from collectors.schemas import DISK
from engine._native import InflightSampler

RATE_HZ = 1000.0
"""A figure needs about a thousand looks to be within some percent."""
CPU_SHARE = 0.02
"""Of one core; the sampler slows down when looks are expensive."""
MAX_WATCHED = 4
"""Every look costs microseconds of CPU, so only the busiest are worth it."""
STAY_BONUS = 2.0
"""A newcomer must be that much busier than a watched device to take its place."""
IDLE_TICKS = 5
"""A watched device that did nothing for so many ticks is given up."""

_SUM = DISK.index("driver_in_flight_sum")
_WEIGHTED = DISK.index("weighted_ms")
_LEAST = 0.5
"""Score of a watched device that did nothing, below that of any active one."""
_WRAP = np.uint64(0xFFFF_FFFF)


class InflightWatch:
    """Keeps the sampler on the devices with the most I/O time."""

    def __init__(self, sysfs: str, sampler: InflightSampler) -> None:
        self._sysfs = sysfs
        self._sampler = sampler
        self.resting = False
        """Whether to look at nothing, since exact figures need no looks."""
        self._rows: Rows | None = None
        self._weighted: NDArray[np.uint64] = np.empty(0, np.uint64)
        self._positions: dict[str, int] = {}
        self._idle_ticks: dict[str, int] = {}
        self._suited: dict[str, bool] = {}

    @property
    def watched(self) -> frozenset[str]:
        """Names of the devices looked at."""
        return frozenset(self._idle_ticks)

    @property
    def cpu_ns(self) -> int:
        """CPU time of the sampler thread."""
        return self._sampler.cpu_ns

    def close(self) -> None:
        """Stop the sampler."""
        self._sampler.close()

    def fill(self, table: Table) -> None:
        """Write what was seen since the last tick into the `driver_*` columns, then choose for the next one."""
        if table.rows is not self._rows:
            self._positions = {name: row for row, name in enumerate(table.rows.names)}
            self._suited = {}
        sampled, sums = self._sampler.read()
        for name, seen in zip(sampled, sums, strict=True):
            row = self._positions.get(name)
            if row is not None:
                table.values[row, _SUM : _SUM + 4] = seen
        chosen = self._choose(table)
        if self.resting:
            chosen = set()
        if chosen != set(sampled):
            self._sampler.watch(sorted(chosen))

    def _choose(self, table: Table) -> set[str]:
        weighted = table.values[:, _WEIGHTED].copy()
        io_ms = (weighted - self._before(table.rows, weighted)) & _WRAP
        chosen = self._busiest(table.rows, io_ms)
        self._idle_ticks = {name: self._ticks_idle(name, io_ms) for name in chosen}
        self._rows, self._weighted = table.rows, weighted
        return set(self._idle_ticks)

    def _before(self, rows: Rows, weighted: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Put the times of the last tick in the order of this one's rows; a row that is new has done nothing yet."""
        if rows is self._rows:
            return self._weighted
        if self._rows is None:
            return weighted
        places = self._rows.positions
        known = [(row, places[key]) for row, key in enumerate(rows.keys) if key in places]
        before = weighted.copy()
        if known:
            here, there = np.array(known, dtype=np.intp).T
            before[here] = self._weighted[there]
        return before

    def _ticks_idle(self, name: str, io_ms: NDArray[np.uint64]) -> int:
        return 0 if io_ms[self._positions[name]] > 0 else self._idle_ticks.get(name, 0) + 1

    def _busiest(self, rows: Rows, io_ms: NDArray[np.uint64]) -> list[str]:
        """Choose by I/O time of the last tick; watched devices have a bonus, idle ones stay while there is room."""
        scores = io_ms.astype(np.float64)
        for name, ticks in self._idle_ticks.items():
            if ticks < IDLE_TICKS and name in self._positions:
                row = self._positions[name]
                scores[row] = max(scores[row] * STAY_BONUS, _LEAST)
        active = np.flatnonzero(scores)
        chosen: list[str] = []
        for row in active[np.argsort(-scores[active], kind="stable")].tolist():
            if len(chosen) == MAX_WATCHED:
                break
            if self._is_suited(rows.names[row]):
                chosen.append(rows.names[row])
        return chosen

    def _is_suited(self, name: str) -> bool:
        """Whether the device has a driver queue; on others `inflight` counts all I/O and tells nothing of service."""
        if name not in self._suited:
            self._suited[name] = Path(self._sysfs, "block", sysfs_name(name), "mq").is_dir()
        return self._suited[name]


def start_watch(sysfs: str) -> InflightWatch:
    """Start a sampler on nothing yet.

    Raises:
        OSError: no thread can be started.
    """
    return InflightWatch(sysfs, InflightSampler(sysfs, RATE_HZ, CPU_SHARE))
