"""The device graph from HBA port to filesystem as a tree, with live figures on every node."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType

from collectors.latency.subjects import LatencySubject, disk_subject, port_subject
from collectors.model import Frame
from collectors.paths.branches import Node, NodeKind
from engine.replacing import replace
from tui.app_state import AppState
from tui.keys import bindings_of
from tui.screen_registry import TREE
from tui.screens.details import detail_view
from tui.screens.paths.path_table import RANGE_WIDTH, state_column
from tui.screens.paths.tree_table import FIELDS, TreeTable, node_summary, tree_layout, tree_table
from tui.screens.shared.base import View
from tui.screens.shared.pages import open_page
from tui.screens.shared.subject_charts import SubjectCharts
from tui.text.columns import grid_columns, trend_column
from tui.text.row_texts import DeviceTexts
from tui.widgets.grid.height import fit_to_count
from tui.widgets.grid.outline import Outline
from tui.widgets.grid.rows import NAME
from tui.widgets.grid.table import Grid
from tui.widgets.line import TextLine

_TABLES = {NodeKind.PORT: "hbas", NodeKind.PATH: "paths", NodeKind.LUN: "disks", NodeKind.LAYER: "disks"}
_DEVICES = frozenset({NodeKind.PATH, NodeKind.LUN, NodeKind.LAYER, NodeKind.MOUNT})


class TreeOutline(Outline):
    """An outline of nodes with the texts of the path table."""

    def __init__(self) -> None:
        super().__init__()
        self.board: TreeTable | None = None

    def cell_text(self, field_id: str, row: int) -> str | None:
        """Text of a cell in a text column."""
        return None if self.board is None else self.board.cell_text(field_id, row)


class TreeScreen(View):
    """HBA port, target port, path, LUN, devices built on it, mounts; branches open one by one."""

    ENTRY = TREE
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(TREE.actions)
    DEFAULT_CSS = """
    TreeScreen #tree { height: 1fr; }
    TreeScreen #row-summary { height: 2; padding: 0 1; text-wrap: wrap; }
    TreeScreen.-tiny #row-summary { display: none; }
    TreeScreen.-flat #row-summary { height: 1; }
    TreeScreen.-tall SubjectCharts { display: block; }
    """

    def __init__(self, app_state: AppState) -> None:
        super().__init__(app_state)
        self._outline = TreeOutline()
        self._searched = False

    def compose_body(self) -> ComposeResult:
        """Compose the grid, and the description of the node under the cursor."""
        figures = {column.field_id: column for column in grid_columns("paths", FIELDS)}
        figures["busy_pct"] = replace(figures["busy_pct"], width=RANGE_WIDTH, as_text=True)
        columns = (state_column(), *figures.values(), trend_column("paths"))
        title = "HBA port / target / path / LUN / ..."
        yield Grid("tree", columns, sort=NAME, name_title=title, name_part=2, arrangement=self._outline, id="tree")
        yield TextLine(" ", id="row-summary")
        yield SubjectCharts()

    def show_frame(self, frame: Frame) -> None:
        """Show the figures of the nodes."""
        layout = tree_layout(frame.topology, frozenset(self._outline.opened), everything=self._searched)
        board = self._outline.board = tree_table(frame, layout)
        self._outline.adopt(layout.rows, layout.parents, layout.branch)
        grid = self.query_one("#tree", Grid)
        grid.empty_text = "no device graph: recorded without one, or the scan is not done"
        positions = layout.rows.positions
        grid.trends = self.trends(frame, lambda key: _history_of(layout.nodes[positions[key]]))
        grid.show(board.table, texts=DeviceTexts([node.of for node in layout.nodes], frame.topology))
        fit_to_count(grid, grid.row_count, self.query_one(SubjectCharts).most_rows(self.size.height))
        self._show_summary()
        self._show_charts(frame)

    def _show_summary(self) -> None:
        node = self._node()
        text = "" if node is None or self.app_state.frame is None else node_summary(self.app_state.frame, node)
        self.query_one("#row-summary", TextLine).put(text)

    def _show_charts(self, frame: Frame) -> None:
        self.query_one(SubjectCharts).show(self.app_state, frame, _history_of(self._node()))

    def _node(self) -> Node | None:
        """Find the node under the cursor."""
        board, key = self._outline.board, self.query_one("#tree", Grid).cursor_key
        row = None if board is None or key is None else board.layout.rows.positions.get(key)
        return None if board is None or row is None else board.layout.nodes[row]

    @on(Grid.RowHighlighted, "#tree")
    def _highlighted(self) -> None:
        self._show_summary()
        self.draw_at_rest(self._show_charts)

    @on(Grid.FilterChanged, "#tree")
    def _filter_changed(self, event: Grid.FilterChanged) -> None:
        """Search the closed branches too."""
        if bool(event.text) != self._searched:
            self._searched = bool(event.text)
            self.refresh_view()

    @on(Grid.RowSelected, "#tree")
    def action_tree_open(self) -> None:
        """Open or close a branch; show the details of a leaf. A focused grid handles Enter first."""
        key = self.query_one("#tree", Grid).cursor_key
        if key is not None and self._outline.is_branch(key):
            self._outline.toggle(key)
            self.refresh_view()
        else:
            self.action_tree_details()

    def latency_subject(self) -> LatencySubject | None:
        """Return the port, path or disk under the cursor."""
        frame, node = self.app_state.frame, self._node()
        if frame is None or node is None or node.kind not in _TABLES:
            return None
        return port_subject(node.of, frame.topology) if node.kind is NodeKind.PORT else disk_subject(node.of, frame)

    def action_tree_unfold(self) -> None:
        """Open one more level below the node."""
        board, node = self._outline.board, self._node()
        if board is None or node is None:
            return
        below = {one.key for one in board.layout.nodes if one.branch and _is_below(one, node)}
        self._outline.opened |= below
        self.refresh_view()

    def action_tree_fold(self) -> None:
        """Close all branches."""
        self._outline.opened.clear()
        self.refresh_view()

    def sheet_subject(self) -> tuple[str, str] | None:
        """Return the port, path or disk under the cursor."""
        return _history_of(self._node())

    def load_device(self) -> str | None:
        """Return the path, LUN or device under the cursor; for a mount the device that carries it."""
        node = self._node()
        return None if node is None or node.kind not in _DEVICES else node.of

    def action_tree_details(self) -> None:
        """Show the port, path or disk under the cursor."""
        node = self._node()
        table = None if node is None else _TABLES.get(node.kind)
        if node is None or table is None or self.app_state.frame is None:
            return
        open_page(self.app, detail_view(self.app_state, table, node.of))


def _history_of(node: Node | None) -> tuple[str, str] | None:
    """Frame table and key of a node; None for one without figures of its own."""
    table = None if node is None else _TABLES.get(node.kind)
    return None if node is None or table is None else (table, node.of)


def _is_below(node: Node, other: Node) -> bool:
    return node.key == other.key or node.key.startswith(f"{other.key}\n")
