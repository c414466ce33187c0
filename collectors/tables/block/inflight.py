"""Choice of devices for the in-flight sampler, and its sums in the DISK table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from collectors.derive.counter_deltas import positions
from collectors.kernel.identity import sysfs_name
from collectors.model import MISSING, Rows, Table
from collectors.tables.block.schema import DISK
from collectors.tables.block.stalls import has_outstanding
from engine._native import InflightSampler

RATE_HZ = 2000.0
"""Highest useful sampling rate: a hundred samples find a disk busy that is so for 5 % of a second."""
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
_LEAST = 0.25
"""Score of an idle sampled device, below that of any active one."""
_ACTIVE = 0.5
"""Score of a device with less than a millisecond of I/O time, or I/Os still in flight."""
_WRAP = np.uint64(0xFFFF_FFFF)


class InflightWatch:
    """Samples the devices with the most I/O time."""

    def __init__(self, sysfs: str, sampler: InflightSampler) -> None:
        self._sysfs = sysfs
        self._sampler = sampler
        self.paused = False
        """Whether to take no samples, since exact figures need none."""
        self._last: Table | None = None
        """The table of the last tick."""
        self._positions: dict[str, int] = {}
        self._idle_ticks: dict[str, int] = {}
        self._suited: set[str] = set()
        """Names of devices with a driver queue; on others `inflight` counts all I/O, not only I/O in service."""
        self._unsuited: NDArray[np.bool_] = np.zeros(0, np.bool_)
        """Rows without one, as far as they were sampled."""

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
        if self._last is None or table.rows is not self._last.rows:
            self._positions = {name: row for row, name in enumerate(table.rows.names)}
            self._suited, self._unsuited = set(), np.zeros(len(table.rows), np.bool_)
        sampled, sums = self._sampler.read()
        for name, row_sums in zip(sampled, sums, strict=True):
            row = self._positions.get(name)
            if row is not None:
                table.values[row, _SAMPLED] = row_sums
        chosen = self._choose(table)
        if self.paused:
            chosen = set()
        if chosen != set(sampled):
            watched = self._sampler.watch(sorted(chosen))
            self._begin(table, set(watched).difference(sampled))

    def _begin(self, table: Table, names: set[str]) -> None:
        """Start the sums of new devices at 0, so that the next interval has figures."""
        for name in names:
            table.values[self._positions[name], _SAMPLED] = 0
            table.values[self._positions[name], _UNBROKEN] = MISSING

    def _choose(self, table: Table) -> set[str]:
        now, before = table.values, self._values_before(table)
        io_ms = (now[:, _WEIGHTED] - before[:, _WEIGHTED]) & _WRAP
        moved = has_outstanding(now)
        for column in _COMPLETED:
            moved |= now[:, column] != before[:, column]
        scores = np.maximum(io_ms, moved * _ACTIVE)
        chosen = self._busiest(table.rows, scores)
        self._idle_ticks = {name: self._ticks_idle(name, scores) for name in chosen}
        self._last = table
        return set(self._idle_ticks)

    def _values_before(self, table: Table) -> NDArray[np.uint64]:
        """Values of the last tick in the order of this one; a new row has its current values."""
        if self._last is None:
            return table.values
        if self._last.rows is table.rows:
            return self._last.values
        at = positions(self._last.rows, table.rows.keys)
        before = table.values.copy()
        before[at >= 0] = self._last.values[at[at >= 0]]
        return before

    def _ticks_idle(self, name: str, scores: NDArray[np.float64]) -> int:
        return 0 if scores[self._positions[name]] > 0 else self._idle_ticks.get(name, 0) + 1

    def _busiest(self, rows: Rows, active_scores: NDArray[np.float64]) -> list[str]:
        """Choose by I/O time of the last tick; sampled devices have a bonus, idle ones stay while there is room."""
        scores = np.where(self._unsuited, 0.0, active_scores)
        for name, ticks in self._idle_ticks.items():
            if ticks < IDLE_TICKS and name in self._positions:
                row = self._positions[name]
                scores[row] = max(scores[row] * STAY_BONUS, _LEAST)
        chosen: list[str] = []
        while len(chosen) < MAX_WATCHED and scores.any():
            row = int(np.argmax(scores))
            scores[row] = 0.0
            if self._is_suited(rows.names[row]):
                chosen.append(rows.names[row])
            else:
                self._unsuited[row] = True
        return chosen

    def _is_suited(self, name: str) -> bool:
        if name not in self._suited and Path(self._sysfs, "block", sysfs_name(name), "mq").is_dir():
            self._suited.add(name)
        return name in self._suited


def start_watch(sysfs: str) -> InflightWatch:
    """Start a sampler without devices.

    Raises:
        OSError: no thread can be started.
    """
    return InflightWatch(sysfs, InflightSampler(sysfs, RATE_HZ, CPU_SHARE))
