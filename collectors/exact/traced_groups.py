"""Keeps the groups of a tracer those of the topology."""

from __future__ import annotations

from collectors.exact.groups import Groups, groups_of
from collectors.exact.tracer import Tracer
from collectors.model import MISSING, Table
from collectors.tables.block.trace_schema import TRACE_GROUP
from collectors.topology.graph import Graph


class TracedGroups:
    """Regroups when the graph changed, and reads."""

    def __init__(self) -> None:
        self._graph: Graph | None = None
        self._groups = Groups.none()

    def read(self, tracer: Tracer, graph: Graph) -> Table:
        """Read all groups; one whose devices changed is missing this time, so that no interval spans the change."""
        changed = self._follow(tracer, graph) if graph is not self._graph else ()
        values = tracer.read_groups().copy()
        values[list(changed)] = MISSING
        return Table(TRACE_GROUP, self._groups.rows, values)

    def _follow(self, tracer: Tracer, graph: Graph) -> tuple[int, ...]:
        """Take over the groups of a graph; places of those whose devices are others than before."""
        before, groups = self._groups, groups_of(graph)
        self._graph = graph
        if groups.members == before.members and groups.rows.keys == before.rows.keys:
            return ()
        tracer.regroup(groups.members)
        self._groups = groups
        old = {key: before.members[place] for key, place in before.rows.positions.items()}
        return tuple(place for key, place in groups.rows.positions.items() if old.get(key) != groups.members[place])
