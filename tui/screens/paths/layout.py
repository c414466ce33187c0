"""Rows of the path screen, groups and then their paths, and the severity of each."""

from __future__ import annotations

import functools

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.model import Rows, Topology
from collectors.paths.groups import GroupBy, PathGroups, lun_name, path_groups, port_name
from collectors.paths.state import PathLevel, PathState, path_states
from collectors.tables.block.path_verdict import PathJudgement
from engine.text import safe_text
from tui.history.gone_paths import GoneThen


class PathLayout(Struct, frozen=True, eq=False):
    """Groups and paths as rows of one table; the same object while rows, topology and grouping are unchanged."""

    rows: Rows
    """Groups first, then paths in the order of the "paths" table."""
    groups: PathGroups
    parents: NDArray[np.intp]
    branch: NDArray[np.bool_]
    states: tuple[PathState, ...]
    """States of the paths."""
    levels: NDArray[np.intp]
    """Levels of those states."""

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


UNEVEN, SICK, DOWN, GONE = 2.0, 3.0, 4.0, 5.0
_BY_LEVEL = {
    PathLevel.ACTIVE: 0.0,
    PathLevel.SECONDARY: 0.5,
    PathLevel.STANDBY: 1.0,
    PathLevel.MARGINAL: UNEVEN,
    PathLevel.DOWN: DOWN,
}
_PER_OCTAVE, _MOST_OCTAVES = 0.1, 9.0
"""Degraded paths are sorted slowest first, by powers of two, so that rows do not jump."""


def severities(layout: PathLayout, judged: PathJudgement | None, gone: GoneThen) -> NDArray[np.float64]:
    """Severity of each row of a layout; that of a group is that of its worst path."""
    values = np.array([_BY_LEVEL[level] for level in PathLevel])[layout.levels]
    if judged is not None:
        values = np.maximum(values, np.where(np.isnan(judged.uneven_times), 0.0, UNEVEN))
        values = np.maximum(values, _sickness(judged.sick_times))
    worst = np.zeros(layout.group_count)
    grouped = layout.groups.group_of_row >= 0
    np.maximum.at(worst, layout.groups.group_of_row[grouped], values[grouped])
    return np.concatenate((np.where(_with_gone(layout, gone), GONE, worst), values))


def _sickness(times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rank degraded paths between uneven and down ones; 0 for all others."""
    sick = ~np.isnan(times)
    octaves = np.minimum(np.floor(np.log2(np.where(sick, times, 1.0))), _MOST_OCTAVES)
    return np.where(sick, SICK + _PER_OCTAVE * octaves, 0.0)


def _with_gone(layout: PathLayout, gone: GoneThen) -> NDArray[np.bool_]:
    """Mark groups that are LUNs with lost paths."""
    if not len(gone) or layout.groups.by is not GroupBy.LUN:
        return np.zeros(layout.group_count, np.bool_)
    return np.array([bool(gone.of_lun(key)) for key in layout.groups.of], np.bool_)
