"""Choice of devices for the in-flight sampler, and its sums in the DISK table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from collectors.kernel.identity import sysfs_name
from collectors.model import MISSING, Rows, Table
from collectors.tables.block.schema import DISK
from engine._native import InflightSampler

RATE_HZ = 2000.0
"""Highest useful sampling rate: of a disk busy for 5 % of a second a hundred samples find it busy."""
CPU_SHARE = 0.03
"""Share of one core; the sampler slows down if samples are expensive: 10 to 40 us each, mostly for waking up."""
MAX_WATCHED = 4
"""Most devices sampled: each sample costs microseconds of CPU, so only the busiest are sampled."""
STAY_BONUS = 2.0
"""Factor by which another device must be busier than a sampled one to replace it."""
IDLE_TICKS = 5
"""Idle ticks after which a sampled device is dropped."""

_SAMPLED = slice(DISK.index("driver_in_flight_sum"), DISK.index("driver_unbroken_us") + 1)
_UNBROKEN = DISK.index("driver_unbroken_us")
_WEIGHTED = DISK.index("weighted_ms")
_COMPLETED = [DISK.index(name) for name in ("reads", "writes", "discards")]
_IN_FLIGHT = DISK.index("in_flight_now")
_LEAST = 0.25
"""Score of an idle sampled device, below that of any active one."""
_ACTIVE = 0.5
"""Score of a device with less than a millisecond of I/O time, or I/Os still in flight."""
_WRAP = np.uint64(0xFFFF_FFFF)
_GAUGE_LIMIT = np.uint64(1 << 31)


class InflightWatch:
    """Samples the devices with the most I/O time."""

    def __init__(self, sysfs: str, sampler: InflightSampler) -> None:
        self._sysfs = sysfs
        self._sampler = sampler
        self.paused = False
        """Whether to take no samples, since exact figures need none."""
        self._rows: Rows | None = None
        self._weighted: NDArray[np.uint64] = np.empty(0, np.uint64)
        self._completed: NDArray[np.uint64] = np.empty(0, np.uint64)
        self._positions: dict[str, int] = {}
        self._idle_ticks: dict[str, int] = {}
        self._suited: dict[str, bool] = {}

    @property
    def watched(self) -> frozenset[str]:
        """Names of the sampled devices."""
        return frozenset(self._idle_ticks)

    @property
    def cpu_ns(self) -> int:
        """CPU time of the sampler thread."""
        return self._sampler.cpu_ns

    def close(self) -> None:
        """Stop the sampler."""
        self._sampler.close()

    def fill(self, table: Table) -> None:
        """Write the sums since the last tick into the `driver_*` columns, then choose devices for the next one."""
        if table.rows is not self._rows:
            self._positions = {name: row for row, name in enumerate(table.rows.names)}
            self._suited = {}
        sampled, sums = self._sampler.read()
        for name, row_sums in zip(sampled, sums, strict=True):
            row = self._positions.get(name)
            if row is not None:
                table.values[row, _SAMPLED] = row_sums
        chosen = self._choose(table)
        if self.paused:
            chosen = set()
        if chosen != set(sampled):
            self._sampler.watch(sorted(chosen))
            self._begin(table, chosen.difference(sampled))

    def _begin(self, table: Table, names: set[str]) -> None:
        """Start the sums of new devices at 0, so that the next interval has figures."""
        for name in names & set(self._sampler.read()[0]):
            table.values[self._positions[name], _SAMPLED] = 0
            table.values[self._positions[name], _UNBROKEN] = MISSING

    def _choose(self, table: Table) -> set[str]:
        weighted = table.values[:, _WEIGHTED].copy()
        completed = table.values[:, _COMPLETED].copy()
        io_ms = (weighted - self._before(table.rows, weighted, self._weighted)) & _WRAP
        moved = (completed != self._before(table.rows, completed, self._completed)).any(axis=1)
        in_flight = table.values[:, _IN_FLIGHT]
        # Some kernels print a count that is briefly negative as unsigned.
        moved |= (in_flight > 0) & (in_flight < _GAUGE_LIMIT)
        scores = np.maximum(io_ms, moved * _ACTIVE)
        chosen = self._busiest(table.rows, scores)
        self._idle_ticks = {name: self._ticks_idle(name, scores) for name in chosen}
        self._rows, self._weighted, self._completed = table.rows, weighted, completed
        return set(self._idle_ticks)

    def _before(self, rows: Rows, now: NDArray[np.uint64], last: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Reorder values of the last tick to the rows of this one; a new row keeps its current values."""
        if rows is self._rows:
            return last
        if self._rows is None:
            return now
        positions = self._rows.positions
        known = [(row, positions[key]) for row, key in enumerate(rows.keys) if key in positions]
        before = now.copy()
        if known:
            here, there = np.array(known, dtype=np.intp).T
            before[here] = last[there]
        return before

    def _ticks_idle(self, name: str, scores: NDArray[np.float64]) -> int:
        return 0 if scores[self._positions[name]] > 0 else self._idle_ticks.get(name, 0) + 1

    def _busiest(self, rows: Rows, active_scores: NDArray[np.float64]) -> list[str]:
        """Choose by I/O time of the last tick; sampled devices have a bonus, idle ones stay while there is room."""
        scores = active_scores.copy()
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
        """Whether the device has a driver queue; on others `inflight` counts all I/O, not only I/O in service."""
        if name not in self._suited:
            self._suited[name] = Path(self._sysfs, "block", sysfs_name(name), "mq").is_dir()
        return self._suited[name]


def start_watch(sysfs: str) -> InflightWatch:
    """Start a sampler without devices.

    Raises:
        OSError: no thread can be started.
    """
    return InflightWatch(sysfs, InflightSampler(sysfs, RATE_HZ, CPU_SHARE))
