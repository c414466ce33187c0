"""Counters of all whole block devices, read at every tick."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from collectors.kernel.device_instances import DeviceInstanceReader
from collectors.kernel.identity import DeviceInstance, InstanceKeys, storable_name
from collectors.kernel.uevents import Budget, UeventCounter
from collectors.model import Rows, Table
from collectors.sampling.reading import Reading
from collectors.tables.block.inflight import InflightWatch
from collectors.tables.block.schema import DISK, DISKSTATS_COLUMNS
from collectors.tables.block.stalls import StallClock
from engine._native import BlockReader
from engine.events import Event, EventKind

_EVER_DID_IO = slice(0, 11)
"""Columns of every kernel version; all are 0 on a device that never did I/O."""


IDENTITY_SHARE = 0.05
"""Limit of the time spent re-reading identities because of uevents of other subsystems."""


class BlockCollector:
    """Reads the DISK table and detects devices that are added, removed or replaced under the same name.

    The kernel counts every uevent in SYSFS/kernel/uevent_seqnum; when it changed, identities are read again around
    the counters, so that a name reused for another device never continues the row of the old one. With continuous
    uevents of other subsystems and many devices this takes `identity_share` of the time at most, and is immediate only
    after `rescan`.
    """

    def __init__(
        self,
        procfs: str = "/proc",
        sysfs: str = "/sys",
        watch: InflightWatch | None = None,
        identity_share: float = IDENTITY_SHARE,
    ) -> None:
        self._instances = DeviceInstanceReader(sysfs)
        self._watch = watch
        self._reader = BlockReader(procfs, sysfs, spare_columns=len(DISK.columns) - len(DISKSTATS_COLUMNS))
        self._uevents = UeventCounter(sysfs)
        self._generation = 0
        self._stale = True
        self._urgent = True
        self._budget = Budget(identity_share)
        self._instance_keys = InstanceKeys()
        self._members = Members()
        self._stalls = StallClock()
        self._table: Table | None = None
        self._malformed = 0

    @property
    def table(self) -> Table | None:
        """The last table."""
        return self._table

    @property
    def rows(self) -> Rows:
        """Rows of the last table; the same object until a device is added or removed."""
        return self._members.rows

    @property
    def in_flight(self) -> NDArray[np.uint64]:
        """I/Os in flight by the kernel's count, of the rows of the last table."""
        return np.zeros(0, np.uint64) if self._table is None else self._table.column("in_flight_now")

    def rescan(self) -> None:
        """Read the identities of all devices again at the next tick."""
        self._urgent = True

    def read(self) -> Reading:
        """Read all counters.

        Raises:
            OSError: the kernel's files cannot be read.
        """
        begun_ns = time.monotonic_ns()
        values = self._read_consistently()
        ended_ns = time.monotonic_ns()
        if self._members.woken(values):
            self._refresh(values)
        table = self._table = Table(DISK, self._members.rows, self._members.of(values))
        self._stalls.fill(table, begun_ns, ended_ns)
        if self._watch is not None:
            self._watch.fill(table)
        return Reading({DISK.name: table}, events=self._unread())

    def _unread(self) -> tuple[Event, ...]:
        """Report counters that are not understood when there are more of them."""
        before, self._malformed = self._malformed, self._reader.malformed
        if self._malformed <= before:
            return ()
        lines = "1 line" if self._malformed == 1 else f"{self._malformed:,} lines"
        return (Event.now(EventKind.MONITOR, f"disk counters: {lines} of the kernel not understood and left out"),)

    def close(self) -> None:
        """Stop the sampler and close its descriptors."""
        if self._watch is not None:
            self._watch.close()
        self._uevents.close()

    def _read_consistently(self) -> NDArray[np.uint64]:
        """Read counters consistent with the identities: once more if a uevent was sent in between."""
        for _ in range(2):
            if self._uevents.moved():
                self._stale = True
            due = self._urgent or (self._stale and self._budget.allows())
            if due:
                self._reader.rescan()
            values = self._reader.read()
            if due or self._reader.generation != self._generation:
                self._refresh(values)
            if not self._uevents.pending():
                break
        return values

    def _refresh(self, values: NDArray[np.uint64]) -> None:
        started_s = time.thread_time()
        self._generation = self._reader.generation
        self._stale = self._urgent = False
        names = self._reader.names()
        incarnations = self._instances.read(names)
        keys = self._instance_keys.keys(names, self._reader.numbers(), incarnations)
        self._members.update(names, keys, incarnations, values)
        self._budget.spend(time.thread_time() - started_s)


class Members:
    """Rows of the reader that are in the table: all but those of size 0 that never did I/O (unused loop devices)."""

    def __init__(self) -> None:
        self.rows = Rows((), ())
        self._shown: NDArray[np.intp] | None = None
        self._hidden: NDArray[np.intp] = np.empty(0, np.intp)

    def update(
        self,
        names: Sequence[str],
        keys: Sequence[str],
        incarnations: Sequence[DeviceInstance],
        values: NDArray[np.uint64],
    ) -> None:
        """Select the rows again; keeps the rows object if the result is the same."""
        empty = np.array([incarnation.size_bytes == 0 for incarnation in incarnations], dtype=bool)
        hidden = empty & ~values[:, _EVER_DID_IO].any(axis=1)
        self._hidden = np.flatnonzero(hidden)
        self._shown = np.flatnonzero(~hidden) if len(self._hidden) else None
        shown = range(len(names)) if self._shown is None else self._shown.tolist()
        rows = Rows(tuple(keys[row] for row in shown), tuple(storable_name(names[row]) for row in shown))
        if rows.keys != self.rows.keys:
            self.rows = rows

    def woken(self, values: NDArray[np.uint64]) -> bool:
        """Whether an omitted row has done I/O."""
        return bool(values[self._hidden, _EVER_DID_IO].any())

    def of(self, values: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Values of the rows in the table."""
        return values if self._shown is None else values[self._shown]
