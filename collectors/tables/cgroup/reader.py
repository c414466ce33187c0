"""I/O counters of control groups, read at every tick."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from collectors.kernel.identity import number_of, storable_name
from collectors.model import MISSING, Rows, Table
from collectors.sampling.reading import Reading
from collectors.tables.cgroup.schema import CGROUP, COSTS, COUNTS, LIMITS, PRESSURES, VRATE, row_key, row_name
from collectors.tables.cgroup.throttle import ThrottleWaits
from collectors.tables.cgroup.tree import MOST_GROUPS, Group, GroupTree, Hierarchy, Number
from engine._native import GroupReader
from engine.events import Event, EventKind

RETRY_S = 2.0
"""Interval at which missing I/O files of a group (io controller off) are tried again."""
MOST_ROWS = 16_384
MOST_OPEN = 1024
"""Files that may stay open."""

_WIDTH = len(COUNTS) + len(COSTS) + len((VRATE,))
_COUNTERS = slice(CGROUP.index(COUNTS[0]), CGROUP.index(VRATE) + 1)
_PSI = slice(CGROUP.index(PRESSURES[0]), CGROUP.index(PRESSURES[-1]) + 1)
"""Columns of GroupReader behind the counters."""
_LIMITS = slice(CGROUP.index(LIMITS[0]), CGROUP.index(LIMITS[-1]) + 1)

_Shown = tuple[tuple[Group, tuple[Number, ...]], ...]
"""Groups with the devices of each, in the order of the rows."""

_NO_TABLE = Table(CGROUP, Rows((), ()), np.empty((0, len(CGROUP.columns)), np.uint64))


class CgroupCollector:
    """Reads the CGROUP table; groups and devices without any I/O have no rows."""

    def __init__(
        self, hierarchy: Hierarchy, disks: Callable[[], Table | None], waits: ThrottleWaits | None = None
    ) -> None:
        """Scan the groups.

        Args:
            hierarchy: the hierarchy to read.
            disks: the latest table of block counters, which names the devices.
            waits: times waits for limits; None where that is not wanted.
        """
        self._hierarchy = hierarchy
        self._waits = waits
        self._disks = disks
        self._disk_rows: Rows | None = None
        self._disk_names: Mapping[Number, tuple[str, str]] = {}
        self._tree = GroupTree(hierarchy)
        self._groups: tuple[Group, ...] = ()
        self._counters = GroupReader(
            hierarchy.counters,
            "io.pressure" if hierarchy.v2 else None,
            adds_up=hierarchy.adds_up,
            most_open=MOST_OPEN,
            most_rows=MOST_ROWS,
        )
        self._retry_s = 0.0
        self._generation = -1
        """Generation of the counters whose rows are published."""
        self._shown: _Shown = ()
        self._limits = _limits(())
        self._table = _NO_TABLE
        self._rows = _NO_TABLE.rows
        self._reported: set[str] = set()

    def read(self) -> Reading:
        """Read all counters that can have moved.

        Raises:
            RuntimeError: the thread that scans the groups has failed.
        """
        self._tree.check()
        changed = self._follow(self._tree.found.groups)
        now_s = time.monotonic()
        retry = now_s >= self._retry_s
        if retry:
            self._retry_s = now_s + RETRY_S
        changed |= self._counters.read(retry=retry)
        renamed = self._renamed()
        if changed or renamed:
            self._publish(renamed=renamed)
        table, histograms = self._table, None
        if self._waits is not None:
            table, histograms = self._waits.add(table, lambda: self._shown)
        found = {} if histograms is None else {CGROUP.name: histograms}
        return Reading({CGROUP.name: table}, found, self._events())

    def close(self) -> None:
        """Stop the thread and close all files."""
        self._tree.close()
        if self._waits is not None:
            self._waits.close()
        self._counters.close()

    def _follow(self, groups: tuple[Group, ...]) -> bool:
        """Take the groups and limits of a scan; return whether any row may differ."""
        if groups is self._groups:
            return False
        self._groups = groups
        if self._waits is not None and any(group.limits for group in groups):
            self._waits.start()
        at = {group.path: position for position, group in enumerate(groups)}
        self._counters.follow([(group.number, group.folder, at[group.parent]) for group in groups])
        return True

    def _renamed(self) -> bool:
        """Take the names of the disks; return whether disks were added or removed."""
        disks = self._disks()
        rows = None if disks is None else disks.rows
        if rows is self._disk_rows:
            return False
        self._disk_rows = rows
        named = [] if rows is None else zip(map(number_of, rows.keys), rows.keys, rows.names, strict=True)
        self._disk_names = {number: (key, name) for number, key, name in named if number is not None}
        return True

    def _publish(self, *, renamed: bool) -> None:
        generation = self._counters.generation
        if renamed or generation != self._generation:
            self._generation = generation
            self._shown = tuple(_with_devices(self._groups, self._counters.places().tolist()))
            self._limits = _limits(self._shown)
            self._rows = self._named_rows()
        if not self._rows.keys:
            self._table = _NO_TABLE
            return
        found = self._counters.values()
        values = np.full((len(found), len(CGROUP.columns)), MISSING, np.uint64)
        values[:, _COUNTERS], values[:, _PSI] = found[:, :_WIDTH], found[:, _WIDTH:]
        values[:, _LIMITS] = self._limits
        self._table = Table(CGROUP, self._rows, values)

    def _named_rows(self) -> Rows:
        """Name the rows; the same object if all keys and names are those of before."""
        keys, names = [], []
        for group, devices in self._shown:
            path = storable_name(group.path)
            for major, minor in devices:
                unknown = f"{major}:{minor}"
                key, name = self._disk_names.get((major, minor), (unknown, unknown))
                keys.append(row_key(group.number, key, path))
                names.append(row_name(path, name))
        rows = Rows(tuple(keys), tuple(names))
        return self._rows if (rows.keys, rows.names) == (self._rows.keys, self._rows.names) else rows

    def _events(self) -> tuple[Event, ...]:
        """Report each limit that was exceeded and why waits are not timed, once."""
        refusal, has_more = "" if self._waits is None else self._waits.refusal, self._counters.has_more
        texts = {
            f"no throttle wait of cgroups: {refusal}": bool(refusal),
            f"cgroups: only {MOST_GROUPS:,} groups are read, the rest is left out": self._tree.found.left_out,
            f"cgroups: only {MOST_ROWS:,} rows of group and device are read, the rest is left out": has_more,
        }
        new = [text for text, left_out in texts.items() if left_out and text not in self._reported]
        self._reported.update(new)
        return tuple(Event.now(EventKind.MONITOR, text) for text in new)


def _with_devices(groups: tuple[Group, ...], places: list[list[int]]) -> Iterator[tuple[Group, tuple[Number, ...]]]:
    """Group the places of GroupReader, which follow each other, by group."""
    for position, of_group in itertools.groupby(places, key=lambda place: place[0]):
        yield groups[position], tuple((major, minor) for _, major, minor in of_group)


def _limits(shown: _Shown) -> NDArray[np.uint64]:
    none = (int(MISSING),) * len(LIMITS)
    rows = [group.limits.get(device, none) for group, devices in shown for device in devices]
    return np.array(rows, np.uint64).reshape(-1, len(LIMITS))
