"""Mapping of a tracer's rows to the disk table, and of its groups to the topology."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.exact.tracer import Tracer
from collectors.graph import Graph
from collectors.kernel.identity import number_of, storable_name
from collectors.model import MISSING, Kind, Rows, Table
from collectors.tables.block.schema import TRACE, TRACE_GROUP, group_key


class Groups(Struct, frozen=True, eq=False):
    """Rows of the trace_group table and the kernel names of the devices of each."""

    rows: Rows
    members: tuple[tuple[str, ...], ...]

    @classmethod
    def none(cls) -> Groups:
        """Return no groups."""
        return cls(Rows((), ()), ())


def groups_of(graph: Graph) -> Groups:
    """All groups of the graph that have a device, including groups of one device, which may grow."""
    members: dict[str, list[str]] = {}
    for path in graph.paths:
        if path.port:
            members.setdefault(group_key("hba", path.port), []).append(path.name)
        if path.target:
            members.setdefault(group_key("target", path.target), []).append(path.name)
    members |= dict(_heads(graph))
    keys = tuple(members)
    return Groups(Rows(keys, keys), tuple(map(tuple, members.values())))


def _heads(graph: Graph) -> Iterator[tuple[str, list[str]]]:
    """NVMe heads, for which no tracepoint fires; dm-multipath devices are traced directly."""
    for lun in graph.luns:
        if lun.multipath == "nvme":
            yield group_key("lun", lun.key), [graph.paths[position].name for position in graph.paths_of[lun.key]]


class TracedGroups:
    """Reads the groups, and regroups when the graph changes."""

    def __init__(self) -> None:
        self._graph: Graph | None = None
        self._groups = Groups.none()

    def read(self, tracer: Tracer, graph: Graph) -> Table:
        """Read all groups; a group with changed devices is missing this time, so that no interval spans the change."""
        changed = self._follow(tracer, graph) if graph is not self._graph else ()
        values = tracer.read_groups().copy()
        values[list(changed)] = MISSING
        return Table(TRACE_GROUP, self._groups.rows, values)

    def _follow(self, tracer: Tracer, graph: Graph) -> tuple[int, ...]:
        """Apply the groups of a graph; return the positions of those with changed devices."""
        before, groups = self._groups, groups_of(graph)
        self._graph = graph
        if groups.members == before.members and groups.rows.keys == before.rows.keys:
            return ()
        tracer.regroup(groups.members)
        self._groups = groups
        old = {key: before.members[position] for key, position in before.rows.positions.items()}
        return tuple(
            position for key, position in groups.rows.positions.items() if old.get(key) != groups.members[position]
        )


_PEAKS = np.flatnonzero([column.kind is Kind.PEAK for column in TRACE.columns])
_COUNTERS = np.array([column.kind is Kind.COUNTER for column in TRACE.columns])


class TracedMembers:
    """Rows of the trace table; a new row has counted from 0.

    The tracer identifies devices by number and name, which the kernel reuses: counts of a previous device are
    subtracted when the disk table has a new key for the name.
    """

    def __init__(self) -> None:
        self.rows = Rows((), ())
        """Rows present in the disk table, in the tracer's order."""
        self._place_of_row = np.zeros(0, np.intp)
        self._shown = np.zeros(0, np.intp)
        self._keys: list[str | None] = []
        self._base: dict[int, NDArray[np.uint64]] = {}
        self._fresh = np.zeros(0, np.intp)
        self._source: tuple[int, Rows] | None = None

    def is_current(self, generation: int, disks: Rows) -> bool:
        """Whether no row was added or removed on either side since the last update."""
        return self._source is not None and self._source[0] == generation and self._source[1] is disks

    def update(
        self,
        generation: int,
        disks: Rows,
        names: Sequence[str],
        numbers: NDArray[np.uint32],
        values: NDArray[np.uint64],
    ) -> None:
        """Map the rows again; counts in `values` of a row that changed its key belong to the previous device."""
        keys = _keys(disks, names, numbers)
        known = self._keys + [None] * (len(keys) - len(self._keys))
        # A row that had no key before has counted for this device only.
        pairs = enumerate(zip(known, keys, strict=True))
        fresh = [row for row, (old, new) in pairs if old is not None and new is not None and old != new]
        self._base |= {row: np.where(_COUNTERS, values[row], np.uint64(0)) for row in fresh}
        self._fresh = np.array(fresh, np.intp)
        self._keys = [new if new is not None else old for old, new in zip(known, keys, strict=True)]
        self._source = generation, disks
        self._show(keys, names)

    def of(self, values: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Values of the rows in the table, counted since their device appeared; modifies the given array."""
        if self._base:
            values[list(self._base)] -= np.stack(list(self._base.values()))
        values[np.ix_(self._fresh, _PEAKS)] = MISSING
        self._fresh = np.zeros(0, np.intp)
        return values if len(self._shown) == len(values) else values[self._shown]

    def position(self, row: NDArray[np.uint32]) -> NDArray[np.intp]:
        """Position in the table of each of the tracer's rows, -1 for rows that are not in it."""
        return self._place_of_row[row]

    def _show(self, keys: Sequence[str | None], names: Sequence[str]) -> None:
        last_of_key = {key: row for row, key in enumerate(keys) if key is not None}
        shown = sorted(last_of_key.values())
        rows = Rows(tuple(str(keys[row]) for row in shown), tuple(storable_name(names[row]) for row in shown))
        self._shown = np.array(shown, np.intp)
        self._place_of_row = np.full(len(keys), -1, np.intp)
        self._place_of_row[self._shown] = np.arange(len(shown))
        if rows.keys != self.rows.keys:
            self.rows = rows


def _keys(disks: Rows, names: Sequence[str], numbers: NDArray[np.uint32]) -> list[str | None]:
    """Key of each row in the disk table, None if it has no device of this name and number."""
    of_name = dict(zip(disks.names, disks.keys, strict=True))
    found = [of_name.get(storable_name(name)) for name in names]
    return [
        key if key is not None and number_of(key) == tuple(number) else None
        for key, number in zip(found, numbers.tolist(), strict=True)
    ]
