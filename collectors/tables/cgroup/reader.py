"""What control groups do, read at every tick."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np

from collectors.kernel.identity import number_of, storable_name
from collectors.model import Rows, Table
from collectors.sampling.reading import Reading
from collectors.tables.cgroup.counter_file import OpenFileBudget
from collectors.tables.cgroup.files import Number
from collectors.tables.cgroup.keys import row_key, row_name
from collectors.tables.cgroup.member import Member
from collectors.tables.cgroup.schema import CGROUP
from collectors.tables.cgroup.tree import Group, GroupTree, Hierarchy
from engine.events import Event, EventKind

RETRY_S = 2.0
"""Groups without I/O files, of which the controller is off, are asked for them so often."""
MOST_ROWS = 16_384

_NO_TABLE = Table(CGROUP, Rows((), ()), np.empty((0, len(CGROUP.columns)), np.uint64))


class CgroupCollector:
    """Reads the CGROUP table; groups and devices without any I/O have no rows."""

    def __init__(self, hierarchy: Hierarchy, disks: Callable[[], Table | None]) -> None:
        """Look for groups.

        Args:
            hierarchy: where they are.
            disks: the latest table of block counters, by which devices are named.
        """
        self._hierarchy = hierarchy
        self._disks = disks
        self._disk_rows: Rows | None = None
        self._disk_names: Mapping[Number, tuple[str, str]] = {}
        self._tree = GroupTree(hierarchy)
        self._groups: tuple[Group, ...] = ()
        self._members: dict[str, Member] = {}
        self._budget = OpenFileBudget()
        self._retry_s = 0.0
        self._shape: tuple[object, ...] = ()
        self._table = _NO_TABLE
        self._left_out = False
        self._told = False

    @property
    def cpu_ns(self) -> int:
        """CPU time of the thread that looks for groups."""
        return self._tree.cpu_ns

    def read(self) -> Reading:
        """Read all counters that can have moved.

        Raises:
            RuntimeError: the thread that looks for groups has failed.
        """
        self._tree.check()
        changed = self._follow(self._tree.groups)
        now_s = time.monotonic()
        retry = now_s >= self._retry_s
        if retry:
            self._retry_s = now_s + RETRY_S
        for path, member in self._members.items():
            above = None if path == "/" else self._members[member.group.parent]
            changed |= member.read(above, retry=retry)
        if changed or self._renamed():
            self._publish()
        return Reading({CGROUP.name: self._table}, events=self._events())

    def close(self) -> None:
        """Stop the thread and close all files."""
        self._tree.close()
        for member in self._members.values():
            member.close()
        self._members = {}

    def _follow(self, groups: tuple[Group, ...]) -> bool:
        """Keep the members that are the same groups still, in the order of the tree; whether any row may differ."""
        if groups is self._groups:
            return False
        before, self._members, self._groups = self._members, {}, groups
        changed = len(before) != len(groups)
        for group in groups:
            member = before.get(group.path)
            if member is not None and member.group.number == group.number:
                del before[group.path]
                changed |= member.take(group)
            else:
                member, changed = Member(group, self._hierarchy, self._budget), True
            self._members[group.path] = member
        for member in before.values():
            member.close()
        return changed

    def _renamed(self) -> bool:
        """Whether disks came or went; takes their names."""
        disks = self._disks()
        rows = None if disks is None else disks.rows
        if rows is self._disk_rows:
            return False
        self._disk_rows = rows
        named = [] if rows is None else zip(map(number_of, rows.keys), rows.keys, rows.names, strict=True)
        self._disk_names = {number: (key, name) for number, key, name in named if number is not None}
        return True

    def _publish(self) -> None:
        self._renamed()
        members, rows = [], 0
        for member in self._members.values():
            rows += len(member.devices)
            if rows > MOST_ROWS:
                self._left_out = True
                break
            if member.devices:
                members.append(member)
        if not members:
            self._table, self._shape = _NO_TABLE, ()
            return
        shape = (self._disk_rows, *((member.group.path, member.group.number, member.devices) for member in members))
        if shape != self._shape:
            self._shape, rows_now = shape, self._rows(members)
        else:
            rows_now = self._table.rows
        self._table = Table(CGROUP, rows_now, np.concatenate([member.values for member in members]))

    def _rows(self, members: list[Member]) -> Rows:
        keys, names = [], []
        for member in members:
            path, number = storable_name(member.group.path), member.group.number
            for major, minor in member.devices:
                unknown = f"{major}:{minor}"
                key, name = self._disk_names.get((major, minor), (unknown, unknown))
                keys.append(row_key(number, key, path))
                names.append(row_name(path, name))
        return Rows(tuple(keys), tuple(names))

    def _events(self) -> tuple[Event, ...]:
        if self._told or not self._left_out:
            return ()
        self._told = True
        text = f"cgroups: only {MOST_ROWS:,} rows of group and device are read, the rest is left out"
        return (Event.now(EventKind.MONITOR, text),)
