"""The tree of the device graph with live figures: its nodes and their columns."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.graph import ports_of, targets_of
from collectors.hotness import verdict
from collectors.kernel.hotplug_changes import size_text
from collectors.model import Frame, FrameTable, Rows, Topology
from collectors.paths.branches import Branches, Node, NodeKind
from collectors.paths.groups import GroupBy
from collectors.tables.block.path_verdict import judge_paths, odd_words
from tui.history.subjects import row_of
from tui.screens.paths.path_table import STATE, Only, PathTable, path_table
from tui.screens.paths.sentences import path_summary, port_summary


def node_summary(frame: Frame, node: Node) -> str:
    """Describe a node beyond its columns."""
    graph = frame.topology.graph
    if node.kind is NodeKind.PORT and node.of in ports_of(graph):
        return port_summary(frame, ports_of(graph)[node.of])
    if node.kind is NodeKind.TARGET:
        target = targets_of(graph).get(node.of.partition(" -> ")[2])
        array = f" of {target.array}" if target is not None and target.array else ""
        return f"target port {node.name}{array}"
    if node.kind is NodeKind.PATH:
        row, judged = row_of(node.of, frame.tables.get("paths")), judge_paths(frame)
        odd = "" if row is None or judged is None else odd_words(frame, judged, row)
        return path_summary(frame, node.of, odd)
    row = row_of(node.of, frame.tables.get("disks"))
    size = _size(frame, node.of)
    if row is not None and node.kind is not NodeKind.MOUNT:
        return f"{verdict(frame, row)}{size}"
    return f"{node.name}{size}"


def _size(frame: Frame, key: str) -> str:
    device = frame.topology.devices.get(key)
    size_bytes = None if device is None else device.size_bytes
    return "" if size_bytes is None else f"; {size_text(size_bytes)}"


RowNumbers = NDArray[np.intp]

FIELDS = ("busy_pct", "iops", "service_ms", "queue_ms", "await_ms", "in_flight", "bytes_per_s")
MOST_NODES = 200_000
"""Largest number of nodes: more than any host has, as a bound against cycles."""
_BOARDS = {
    NodeKind.PORT: GroupBy.PORT,
    NodeKind.TARGET: GroupBy.WAY,
    NodeKind.PATH: GroupBy.LUN,
    NodeKind.LUN: GroupBy.LUN,
}
"""Grouping whose rows hold the states of a kind of node."""


class TreeLayout(Struct, frozen=True, eq=False):
    """The nodes as rows of a table; a parent comes before its children."""

    nodes: tuple[Node, ...]
    rows: Rows
    parents: RowNumbers
    branch: NDArray[np.bool_]


@functools.lru_cache(maxsize=2)
def branches(topology: Topology) -> Branches:
    """Find the branches of a topology, cached."""
    return Branches(topology)


@functools.lru_cache(maxsize=2)
def tree_layout(topology: Topology, opened: frozenset[str], *, everything: bool) -> TreeLayout:
    """Lay out the nodes of open branches, or of all; cached, because a grid sorts all names when its rows change."""
    tree = branches(topology)
    nodes = list(tree.roots())
    parents = [-1] * len(nodes)
    position = 0
    while position < len(nodes) < MOST_NODES:
        node = nodes[position]
        if node.branch and (everything or node.key in opened):
            found = list(tree.children(node))
            nodes += found
            parents += [position] * len(found)
        position += 1
    rows = Rows(tuple(node.key for node in nodes), tuple(node.name for node in nodes))
    return TreeLayout(tuple(nodes), rows, np.array(parents, np.intp), np.array([node.branch for node in nodes], bool))


class TreeTable(Struct, frozen=True, eq=False):
    """Figures and texts of the nodes of one frame."""

    frame: Frame
    layout: TreeLayout
    table: FrameTable
    boards: Mapping[GroupBy, PathTable]
    state_rows: Mapping[GroupBy, RowNumbers]
    """Row of each node in the path table of a grouping, -1 if it has none."""

    def cell_text(self, field_id: str, row: int) -> str | None:
        """Text of a cell in a text column: state, busy range or verdict of a node."""
        if field_id not in {STATE, "busy_pct"}:
            return None
        by = _BOARDS.get(self.layout.nodes[row].kind)
        board = None if by is None else self.boards.get(by)
        at = -1 if by is None or board is None else int(self.state_rows[by][row])
        if board is None or at < 0:
            return "" if field_id == STATE else None
        return board.cell_text(field_id, at)


def tree_table(frame: Frame, layout: TreeLayout) -> TreeTable:
    """Collect the figures of all nodes of a layout."""
    boards: dict[GroupBy, PathTable] = {}
    kinds = {node.kind for node in layout.nodes}
    for by in dict.fromkeys(by for kind, by in _BOARDS.items() if kind in kinds):
        board = path_table(frame, by, Only.ALL, FIELDS)
        if board is not None:
            boards[by] = board
    rows = {by: state_rows(layout, boards[by], by) for by in boards}
    columns = {field_id: np.full(len(layout.nodes), np.nan) for field_id in (*FIELDS, STATE)}
    tiers: dict[str, NDArray[np.uint8]] = {}
    for by, board in boards.items():
        _fill(columns, tiers, board.table, rows[by])
    disks = frame.tables.get("disks")
    if disks is not None:
        _fill(columns, tiers, disks, _disk_rows(layout, disks.rows))
    return TreeTable(frame, layout, FrameTable(layout.rows, columns, tiers), boards, rows)


def _fill(
    columns: dict[str, NDArray[np.float64]], tiers: dict[str, NDArray[np.uint8]], table: FrameTable, at: RowNumbers
) -> None:
    """Copy figures of a table to the nodes that have a row in it."""
    there = at >= 0
    for field_id, column in columns.items():
        if field_id in table.columns:
            column[there] = table.columns[field_id][at[there]]
        if field_id in table.tiers:
            codes = tiers.setdefault(field_id, np.zeros(len(at), np.uint8))
            codes[there] = table.tiers[field_id][at[there]]


@functools.lru_cache(maxsize=8)
def _rows_by_key(rows: Rows, layout: TreeLayout, kinds: frozenset[NodeKind], prefix: str) -> RowNumbers:
    return np.array(
        [rows.positions.get(prefix + node.of, -1) if node.kind in kinds else -1 for node in layout.nodes], np.intp
    )


def state_rows(layout: TreeLayout, board: PathTable, by: GroupBy) -> RowNumbers:
    """Row of each node in the path table of a grouping, -1 if it has none."""
    rows = board.layout.rows
    groups = _rows_by_key(rows, layout, _GROUPS[by], f"{by}:")
    if by is not GroupBy.LUN:
        return groups
    alone = _rows_by_key(rows, layout, frozenset({NodeKind.PATH, NodeKind.LUN}), "")
    return np.where(groups >= 0, groups, alone)


_GROUPS = {
    GroupBy.PORT: frozenset({NodeKind.PORT}),
    GroupBy.WAY: frozenset({NodeKind.TARGET}),
    GroupBy.LUN: frozenset({NodeKind.LUN}),
}


def _disk_rows(layout: TreeLayout, rows: Rows) -> RowNumbers:
    """Rows of LUNs and layers in the disk table, whose figures take precedence over those of their paths."""
    return _rows_by_key(rows, layout, frozenset({NodeKind.LUN, NodeKind.LAYER}), "")
