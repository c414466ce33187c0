"""The rows of the path screen: groups, then their paths; rebuilt only when rows or topology change."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collectors.model import Rows, Topology
from collectors.paths.groups import GroupBy, PathGroups, lun_name, path_groups, port_name
from collectors.paths.state import PathLevel, PathState, path_states
from engine.text import safe_text


@dataclass(frozen=True, slots=True, eq=False)
class PathLayout:
    """Groups and paths as rows of one table; the same object while rows, topology and grouping are unchanged."""

    rows: Rows
    """Groups first, then paths in the order of the "paths" table."""
    groups: PathGroups
    parents: NDArray[np.intp]
    branch: NDArray[np.bool_]
    states: tuple[PathState, ...]
    """Of the paths."""
    levels: NDArray[np.intp]
    """Their levels."""

    @property
    def group_count(self) -> int:
        """Rows that are groups."""
        return len(self.groups.rows)


@functools.lru_cache(maxsize=4)
def path_layout(paths: Rows, topology: Topology, by: GroupBy) -> PathLayout:
    """Lay out the rows of a "paths" table."""
    groups = path_groups(paths, topology, by)
    count = len(groups.rows)
    states = path_states(paths, topology.graph)
    return PathLayout(
        rows=Rows((*groups.rows.keys, *paths.keys), (*groups.rows.names, *_path_names(paths, topology, by))),
        groups=groups,
        parents=np.concatenate((np.full(count, -1, np.intp), groups.group_of_row)),
        branch=np.arange(count + len(paths)) < count,
        states=states,
        levels=np.array([PathLevel(state.level) for state in states], np.intp),
    )


def _path_names(rows: Rows, topology: Topology, by: GroupBy) -> tuple[str, ...]:
    """Name each path by what its group does not give: the port if groups are LUNs, else the LUN."""
    ports = {port.key: port_name(port) for port in topology.graph.ports}
    known = {path.key: path for path in topology.graph.paths}
    names = []
    for key, name in zip(rows.keys, rows.names, strict=True):
        path = known.get(key)
        if path is None:
            rest = ""
        elif path.lun == path.key:
            rest = lun_name(path.lun, topology).partition(" ")[2]
        else:
            rest = ports.get(path.port, "") if by is GroupBy.LUN else lun_name(path.lun, topology)
        names.append(f"{safe_text(name)} {rest}".rstrip())
    return tuple(names)
