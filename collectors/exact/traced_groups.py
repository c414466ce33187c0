"""Groups of a tracer, kept equal to those of the topology."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from collectors.exact.tracer import Tracer
from collectors.graph import Graph
from collectors.model import MISSING, Rows, Table
from collectors.tables.block.trace_schema import TRACE_GROUP, group_key


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
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
