"""Control groups: I/O by group and device, and which group is throttled."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.geometry import Size

from collectors.field import Unit
from collectors.latency.subjects import LatencySubject, disk_subject
from collectors.model import Frame, FrameTable, Rows, Topology
from collectors.tables.cgroup.schema import parts_of
from collectors.tables.cgroup.subject import CGROUPS
from engine.text import safe_text
from tui.app_state import AppState
from tui.history.subjects import row_of
from tui.history.trends import rows_of
from tui.keys import bindings_of
from tui.screen_registry import CGROUPS as ENTRY
from tui.screens.details import DiskView
from tui.screens.shared.base import View
from tui.screens.shared.chart_curves import Panel, RowCharts
from tui.screens.shared.pages import open_page
from tui.screens.shared.process_scope import Scope
from tui.text.columns import default_columns, figure_lines, with_trend
from tui.text.glyphs import glyphs_of
from tui.text.row_texts import cgroup_texts
from tui.widgets.grid.height import fit_beside_charts
from tui.widgets.grid.table import Grid
from tui.widgets.line import TextLine

_NONE_HERE = "no I/O accounting of control groups here: neither io (v2) nor blkio (v1)"
_NONE_RECORDED = "this recording holds no control groups"
PANELS = (
    Panel("iops", "IOPS", Unit.PER_SECOND, ("iops",), CGROUPS.table),
    Panel("throughput", "Throughput", Unit.BYTES_PER_SECOND, ("bytes_per_s",), CGROUPS.table),
    Panel("pressure", "Pressure", Unit.PERCENT, ("psi_some_pct", "psi_full_pct", "limit_pct"), CGROUPS.table),
)


class CgroupsScreen(View):
    """Groups with I/O, the largest first, and the history of the one under the cursor."""

    ENTRY = ENTRY
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(ENTRY.actions)
    DEFAULT_CSS = """
    CgroupsScreen #groups { height: 1fr; }
    CgroupsScreen #figures { height: 2; }
    CgroupsScreen #charts { height: 1fr; min-height: 8; grid-size: 2 1; grid-gutter: 0 1; }
    CgroupsScreen #throughput { display: none; }
    CgroupsScreen.-wide #charts { grid-size: 3 1; }
    CgroupsScreen.-wide #throughput { display: block; }
    CgroupsScreen.-tiny #summary, CgroupsScreen.-tiny #figures { display: none; }
    """

    def __init__(self, app_state: AppState) -> None:
        super().__init__(app_state)
        self._every = False

    def compose_body(self) -> ComposeResult:
        """Summary, grid, figures and charts of the group under the cursor."""
        yield TextLine(" ", id="summary")
        columns = with_trend(default_columns(CGROUPS.table), CGROUPS.table, after="")
        yield Grid(CGROUPS.table, columns, sort="iops", name_title="Group and device", name_part=2, id="groups")
        yield TextLine(" ", id="figures", classes="extra")
        yield RowCharts(*PANELS)

    def show_frame(self, frame: Frame) -> None:
        """Update summary, rows and the row under the cursor."""
        table = frame.tables.get(CGROUPS.table)
        grid = self.query_one("#groups", Grid)
        grid.waiting, grid.empty_text = self._empty_reason, "no group does I/O"
        shown = table if table is None or self._every else _rows_where(table, CGROUPS.active(table).tobytes())
        grid.trends = self.trends(frame, rows_of(CGROUPS.table))
        fit_beside_charts(grid, shown, self.query_one("#charts"))
        if shown is None:
            grid.show(None)
        else:
            grid.show(shown, _labels(shown.rows, frame.topology), cgroup_texts(shown.rows, frame.topology))
        self.query_one("#summary", TextLine).put(self._summary(table, shown))
        self._show_chosen(frame)
        self._show_charts(frame)

    @property
    def _empty_reason(self) -> str:
        return _NONE_RECORDED if self.app_state.transport.seekable else _NONE_HERE

    def _summary(self, table: FrameTable | None, shown: FrameTable | None) -> Content:
        if table is None or shown is None:
            return Content(f" {self._empty_reason}")
        idle = len(table.rows) - len(shown.rows)
        hidden = f", {idle:,} idle row{'s' if idle > 1 else ''} hidden" if idle else ""
        words = "all groups" if self._every else f"groups with I/O{hidden}"
        key = (f" {self.key_text('cgroups.idle')} ", "bold $accent")
        return Content.assemble(key, f"{words}   a group includes its descendants")

    def _show_chosen(self, frame: Frame) -> None:
        """Show figures and history of the group under the cursor; an idle one keeps its history."""
        key, table = self.query_one("#groups", Grid).cursor_key, frame.tables.get(CGROUPS.table)
        row = row_of(key, table)
        line = self.query_one("#figures", TextLine)
        if key is None or table is None or row is None:
            line.put(" ")
            return
        fields = [field.id for field in CGROUPS.fields]
        room = Size(self.size.width, 1)
        figures = figure_lines(table, CGROUPS.table, row, fields, room=room, glyphs=glyphs_of(self))
        line.put(Content.assemble((f" {safe_text(table.rows.names[row])}\n", "bold"), figures))

    def _show_charts(self, frame: Frame) -> None:
        self.query_one(RowCharts).show_chosen(self.app_state, frame, self.query_one("#groups", Grid))

    @on(Grid.RowHighlighted, "#groups")
    def _highlighted(self) -> None:
        if self.app_state.frame is not None:
            self._show_chosen(self.app_state.frame)
            self.draw_at_rest(self._show_charts)

    def latency_subject(self) -> LatencySubject | None:
        """Return the disk of the row under the cursor: latencies are not known by group."""
        disk = self._disk()
        return None if self.app_state.frame is None or disk is None else disk_subject(disk, self.app_state.frame)

    def load_device(self) -> str | None:
        """Return the disk of the row under the cursor."""
        return self._disk()

    def process_scope(self, frame: Frame) -> Scope | None:
        """Return the group and the disk of the row under the cursor."""
        key = self.query_one("#groups", Grid).cursor_key
        if key is None:
            return None
        disk, path = parts_of(key)
        device = frame.topology.devices.get(disk)
        name = disk.partition(":")[0] if device is None else device.name
        return Scope(safe_text(f"{name} of {path}"), frozenset({disk}), cgroup=path)

    def _disk(self) -> str | None:
        key = self.query_one("#groups", Grid).cursor_key
        return None if key is None else parts_of(key)[0]

    def action_cgroups_idle(self) -> None:
        """Show or hide idle rows."""
        self._every = not self._every
        self.refresh_view()

    @on(Grid.RowSelected, "#groups")
    def action_cgroups_disk(self) -> None:
        """Show the disk of the row under the cursor; a focused grid handles Enter first."""
        disk = self._disk()
        if disk is not None:
            open_page(self.app, DiskView(self.app_state, disk))


def _rows_where(table: FrameTable, wanted: bytes) -> FrameTable:
    """Select rows by a mask; returns the same Rows object while the selection is unchanged."""
    chosen = np.flatnonzero(np.frombuffer(wanted, np.bool_))
    return table.taken(chosen, _chosen_rows(table.rows, wanted))


@functools.lru_cache(maxsize=2)
def _chosen_rows(rows: Rows, wanted: bytes) -> Rows:
    return rows.taken(np.flatnonzero(np.frombuffer(wanted, np.bool_)).tolist())


@functools.lru_cache(maxsize=2)
def _labels(rows: Rows, topology: Topology) -> Mapping[str, str]:
    return dict(zip(rows.keys, CGROUPS.labels(rows, topology), strict=True))
