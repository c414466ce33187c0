"""Groups of devices whose busy time the kernel side counts together: ports, target ports and NVMe heads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from collectors.model import Rows
from collectors.tables.block.trace_schema import group_key
from collectors.topology.graph import Graph


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Rows of the trace_group table and the kernel names of the devices of each."""

    rows: Rows
    members: tuple[tuple[str, ...], ...]

    @classmethod
    def none(cls) -> Groups:
        """Make the groups of a host that knows none."""
        return cls(Rows((), ()), ())


def groups_of(graph: Graph) -> Groups:
    """All groups of the graph that have a device; those of one device too, since it may get company."""
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
    """NVMe heads, whose own I/Os no tracepoint shows; dm-multipath devices are traced themselves."""
    for lun in graph.luns:
        if lun.multipath == "nvme":
            yield group_key("lun", lun.key), [graph.paths[place].name for place in graph.paths_of[lun.key]]
