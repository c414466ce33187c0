"""Paths and ports in any grouping: which are down, degraded or full."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import ClassVar, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content

from collectors.latency.subjects import LatencySubject, disk_subject, port_subject, target_subject
from collectors.model import Frame, Topology
from collectors.paths.groups import GroupBy
from tui.app_state import AppState
from tui.history.gone_paths import GoneThen
from tui.keys import bindings_of
from tui.screen_registry import PATHS
from tui.screens.details import detail_view
from tui.screens.paths.path_table import STATE, Only, PathTable, path_columns, path_table
from tui.screens.paths.sentences import row_summary, summary
from tui.screens.paths.sheet import PORTS as PORT_TABLES
from tui.screens.shared.base import View
from tui.screens.shared.pages import open_page
from tui.screens.shared.subject_charts import SubjectCharts
from tui.text.row_texts import WithStates, device_texts
from tui.widgets.grid.filtering import NO_TEXTS, RowTexts
from tui.widgets.grid.height import fit_to_count
from tui.widgets.grid.outline import Outline
from tui.widgets.grid.table import Grid
from tui.widgets.line import TextLine


class PathOutline(Outline):
    """An outline of groups with the texts of the path table."""

    def __init__(self) -> None:
        super().__init__()
        self.ties = "iops"
        self.board: PathTable | None = None

    def cell_text(self, field_id: str, row: int) -> str | None:
        """Text of a cell in a text column."""
        return None if self.board is None else self.board.cell_text(field_id, row)


class PathsScreen(View):
    """Groups of paths, filtered by state, with the verdict as text."""

    ENTRY = PATHS
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PATHS.actions)
    DEFAULT_CSS = """
    PathsScreen #paths { height: 1fr; }
    PathsScreen #row-summary { height: 2; padding: 0 1; text-wrap: wrap; }
    PathsScreen.-tiny #summary, PathsScreen.-tiny #row-summary { display: none; }
    PathsScreen.-flat #row-summary { height: 1; }
    PathsScreen.-tall SubjectCharts { display: block; }
    """
    COLUMNS = path_columns()

    def __init__(self, app_state: AppState) -> None:
        super().__init__(app_state)
        self._by = GroupBy.LUN
        self._only = Only.ALL
        self._outline = PathOutline()
        self._made: tuple[tuple[Frame, GroupBy, Only, GoneThen], PathTable | None] | None = None
        """The last table, and what it was made of."""

    def compose_body(self) -> ComposeResult:
        """Compose summary, grid, and the description of the row under the cursor."""
        yield TextLine(" ", id="summary")
        yield Grid("paths", self.COLUMNS, sort=STATE, arrangement=self._outline, id="paths")
        yield TextLine(" ", id="row-summary")
        yield SubjectCharts()

    def show_frame(self, frame: Frame) -> None:
        """Show the figures in the current grouping."""
        grid = self.query_one("#paths", Grid)
        board = self._outline.board = self._board_of(frame)
        grid.trends = self.trends(frame, self._history_of)
        self._outline.passes = None if board is None else board.passes
        if board is not None:
            self._outline.adopt(board.layout.rows, board.layout.parents, board.layout.branch)
        grid.empty_text = self._only.empty_text if self._only is not Only.ALL else _empty_reason(frame)
        grid.set_name_title("path" if board is None or not board.layout.group_count else f"{self._by} / path")
        grid.show(None if board is None else board.table, texts=self._texts(board, frame.topology))
        fit_to_count(grid, grid.row_count, self.query_one(SubjectCharts).most_rows(self.size.height))
        self._show_summary(board)

    def _board_of(self, frame: Frame) -> PathTable | None:
        """Make the table of a frame, once: a screen that is shown again has mostly the same one."""
        gone = self.app_state.history.gone_paths.at(frame.time_ns)
        wanted = frame, self._by, self._only, gone
        if self._made is None or self._made[0] != wanted:
            fields = [column.field_id for column in self.COLUMNS]
            self._made = wanted, path_table(frame, self._by, self._only, fields, gone)
        return self._made[1]

    @staticmethod
    def _texts(board: PathTable | None, topology: Topology) -> RowTexts:
        if board is None:
            return NO_TEXTS
        return WithStates(device_texts(board.layout.rows, topology), board.verdict_words())

    def _show_summary(self, board: PathTable | None) -> None:
        """Write the lines above and below the grid."""
        above = self.query_one("#summary", TextLine)
        if board is None:
            above.put(f" {_empty_reason(self.app_state.frame)}")
        else:
            choices = Content.assemble(*self._choices())
            above.put(choices + summary(board, self.size.width - choices.cell_length))
        self._show_row_summary(board)
        if self.app_state.frame is not None:
            self._show_charts(self.app_state.frame)

    def _choices(self) -> Iterator[tuple[str, str]]:
        yield f" {self.key_text('paths.group')} ", "bold $accent"
        yield f"by {self._by}  ", ""
        yield f"{self.key_text('paths.only')} ", "bold $accent"
        yield f"{self._only}   ", "bold" if self._only is not Only.ALL else ""

    def _show_row_summary(self, board: PathTable | None) -> None:
        key = self.query_one("#paths", Grid).cursor_key
        row = None if board is None or key is None else board.layout.rows.positions.get(key)
        self.query_one("#row-summary", TextLine).put("" if board is None or row is None else row_summary(board, row))

    def _show_charts(self, frame: Frame) -> None:
        self.query_one(SubjectCharts).show(self.app_state, frame, self._selected())

    @on(Grid.RowHighlighted, "#paths")
    def _highlighted(self) -> None:
        self._show_row_summary(self._outline.board)
        self.draw_at_rest(self._show_charts)

    @on(Grid.RowSelected, "#paths")
    def action_paths_open(self) -> None:
        """Open or close a group; show a path. A focused grid handles Enter first."""
        grid = self.query_one("#paths", Grid)
        key = grid.cursor_key
        if key is not None and self._outline.is_branch(key):
            self._outline.toggle(key)
            self._rearrange()
        else:
            self.action_paths_details()

    def latency_subject(self) -> LatencySubject | None:
        """Return the path, LUN or port under the cursor."""
        frame, thing = self.app_state.frame, self._selected()
        if frame is None or thing is None:
            return None
        table, key = thing
        if table == "target_ports":
            return target_subject(key, frame.topology)
        return port_subject(key, frame.topology) if table == "hbas" else disk_subject(key, frame)

    def sheet_subject(self) -> tuple[str, str] | None:
        """Return the path, LUN or port under the cursor."""
        return self._selected()

    def load_device(self) -> str | None:
        """Return the path or LUN under the cursor."""
        thing = self._selected()
        return None if thing is None or thing[0] in PORT_TABLES else thing[1]

    def action_paths_group(self) -> None:
        """Switch to the next grouping."""
        self._by = _after(self._by)
        self.refresh_view()

    def action_paths_only(self) -> None:
        """Switch to the next filter state."""
        self._only = _after(self._only)
        self.refresh_view()

    def action_paths_unfold(self) -> None:
        """Open all groups, or close them if any is open."""
        board = self._outline.board
        if board is not None:
            keys = set(board.layout.groups.rows.keys)
            self._outline.opened = self._outline.opened - keys if keys & self._outline.opened else keys
            self._rearrange()

    def _rearrange(self) -> None:
        grid = self.query_one("#paths", Grid)
        grid.rearrange()
        fit_to_count(grid, grid.row_count, self.query_one(SubjectCharts).most_rows(self.size.height))

    def action_paths_details(self) -> None:
        """Show the path, LUN or port under the cursor."""
        thing = self._selected()
        if thing is not None:
            open_page(self.app, detail_view(self.app_state, *thing))
        elif self._outline.board is not None:
            self.notify("this group has no detail page; Enter opens it", markup=False)

    def _history_of(self, key: str) -> tuple[str, str] | None:
        """Frame table and key of a row; None for groups that are neither a LUN nor a port."""
        board = self._outline.board
        row = None if board is None else board.layout.rows.positions.get(key)
        if board is None or row is None:
            return None
        if board.path_row(row) is not None:
            return "paths", key
        groups = board.layout.groups
        return (_TABLE_OF[groups.by], groups.of[row]) if groups.by in _TABLE_OF else None

    def _selected(self) -> tuple[str, str] | None:
        """Frame table and key of the row under the cursor, if it has one."""
        key = self.query_one("#paths", Grid).cursor_key
        return None if key is None else self._history_of(key)


Choice = TypeVar("Choice", bound=StrEnum)
_TABLE_OF = {GroupBy.LUN: "disks", GroupBy.PORT: "hbas", GroupBy.TARGET: "target_ports"}


def _after(choice: Choice) -> Choice:
    choices = list(type(choice))
    return choices[(choices.index(choice) + 1) % len(choices)]


def _empty_reason(frame: Frame | None) -> str:
    """Say why there is no path to show."""
    if frame is None:
        return "waiting for the first sample"
    if frame.topology.graph.luns:
        return "no disk is behind an HBA port: all are virtual (loop, zram, device mapper)"
    if not frame.topology.devices:
        return "scanning devices"
    return "paths of these disks unknown: this session has no device graph"
