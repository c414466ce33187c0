"""I/O counters of control groups, read at every tick."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np

from collectors.kernel.identity import number_of, storable_name
from collectors.model import Rows, Table
from collectors.sampling.reading import Reading
from collectors.tables.cgroup.files import Number
from collectors.tables.cgroup.member import Member, OpenFileBudget
from collectors.tables.cgroup.schema import CGROUP, row_key, row_name
from collectors.tables.cgroup.throttle import Members, ThrottleWaits
from collectors.tables.cgroup.tree import MOST_GROUPS, Group, GroupTree, Hierarchy
from engine.events import Event, EventKind

RETRY_S = 2.0
"""Interval at which missing I/O files of a group (io controller off) are tried again."""
MOST_ROWS = 16_384

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
        self._members: dict[str, Member] = {}
        self._budget = OpenFileBudget()
        self._retry_s = 0.0
        self._shape: tuple[object, ...] = ()
        self._published: list[Member] = []
        self._table = _NO_TABLE
        self._rows_left_out = False
        self._reported: set[str] = set()

    @property
    def cpu_ns(self) -> int:
        """CPU time of the thread that scans the groups, and of attaching."""
        return self._tree.cpu_ns + (0 if self._waits is None else self._waits.cpu_ns)

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
        for path, member in self._members.items():
            above = None if path == "/" else self._members[member.group.parent]
            changed |= member.read(above, retry=retry)
        if changed or self._renamed():
            self._publish()
        table, histograms = self._table, None
        if self._waits is not None:
            table, histograms = self._waits.add(table, self._shown)
        found = {} if histograms is None else {CGROUP.name: histograms}
        return Reading({CGROUP.name: table}, found, self._events())

    def close(self) -> None:
        """Stop the thread and close all files."""
        self._tree.close()
        if self._waits is not None:
            self._waits.close()
        for member in self._members.values():
            member.close()
        self._members = {}

    def _follow(self, groups: tuple[Group, ...]) -> bool:
        """Update the members from a scan, in its order; return whether any row may differ."""
        if groups is self._groups:
            return False
        before, self._members, self._groups = self._members, {}, groups
        if self._waits is not None and any(group.limits for group in groups):
            self._waits.start()
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
        """Take the names of the disks; return whether disks were added or removed."""
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
                self._rows_left_out = True
                break
            if member.devices:
                members.append(member)
        if not members:
            self._table, self._shape, self._published = _NO_TABLE, (), []
            return
        self._published = members
        shape = (self._disk_rows, *((member.group.path, member.group.number, member.devices) for member in members))
        if shape != self._shape:
            self._shape, rows_now = shape, self._rows(members)
        else:
            rows_now = self._table.rows
        self._table = Table(CGROUP, rows_now, np.concatenate([member.values for member in members]))

    def _shown(self) -> Members:
        return ((member.group, member.devices) for member in self._published)

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
        """Report each limit that was exceeded and why waits are not timed, once."""
        refusal = "" if self._waits is None else self._waits.refusal
        texts = {
            f"no throttle wait of cgroups: {refusal}": bool(refusal),
            f"cgroups: only {MOST_GROUPS:,} groups are read, the rest is left out": self._tree.found.left_out,
            f"cgroups: only {MOST_ROWS:,} rows of group and device are read, the rest is left out": self._rows_left_out,
        }
        new = [text for text, left_out in texts.items() if left_out and text not in self._reported]
        self._reported.update(new)
        return tuple(Event.now(EventKind.MONITOR, text) for text in new)
