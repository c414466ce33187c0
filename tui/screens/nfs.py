"""NFS mounts: their operations, and the transports, verdict and history of the mount under the cursor."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content

from collectors.field import Unit
from collectors.latency.nfs_subjects import nfs_subject
from collectors.latency.subjects import LatencySubject
from collectors.model import Frame, FrameTable
from collectors.tables.nfs.schema import mount_of
from collectors.tables.nfs.subject import NFS_MOUNTS, NFS_TRANSPORTS
from collectors.tables.nfs.verdict import nfs_verdicts
from engine.text import safe_text
from tui.keys import bindings_of
from tui.screen_registry import NFS as ENTRY
from tui.screens.shared.base import View
from tui.screens.shared.chart_curves import Panel, RowCharts
from tui.text.columns import default_columns
from tui.widgets.grid.height import fit_beside_charts
from tui.widgets.grid.table import Grid
from tui.widgets.line import TextLine

_NONE_HERE = "no NFS mount here"
_NONE_RECORDED = "this recording holds no NFS mounts"
_PANELS = (
    Panel("times", "Queue, RTT, execute", Unit.MILLISECONDS, ("execute_ms", "rtt_ms", "queue_ms"), NFS_MOUNTS.table),
    Panel("operations", "Operations", Unit.PER_SECOND, ("iops", "retransmissions_per_s"), NFS_MOUNTS.table),
    Panel("moved", "Throughput", Unit.BYTES_PER_SECOND, ("bytes_per_s",), NFS_MOUNTS.table),
)


class NfsView(View):
    """A row per mount and operation; below, what limits the mount under the cursor, and its transports."""

    ENTRY = ENTRY
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(ENTRY.actions)
    DEFAULT_CSS = """
    NfsView #rows { height: 2fr; }
    NfsView #verdict { height: 1; }
    NfsView #transports { height: 1fr; }
    NfsView #charts { height: 1fr; min-height: 8; grid-size: 2 1; grid-gutter: 0 1; }
    NfsView #moved { display: none; }
    NfsView.-wide #charts { grid-size: 3 1; }
    NfsView.-wide #moved { display: block; }
    NfsView.-tiny #transports { display: none; }
    """

    def compose_body(self) -> ComposeResult:
        """Operations, verdict, transports and charts."""
        yield Grid(NFS_MOUNTS.table, default_columns(NFS_MOUNTS.table), sort="iops", name_title="NFS mount", id="rows")
        yield TextLine(" ", id="verdict")
        yield Grid(
            NFS_TRANSPORTS.table,
            default_columns(NFS_TRANSPORTS.table),
            sort="sends_per_s",
            name_title="Transport",
            id="transports",
        )
        yield RowCharts(*_PANELS)

    def on_mount(self) -> None:
        """Prepare the texts of empty grids."""
        self.query_one("#transports", Grid).waiting = "no transports"

    def latency_subject(self) -> LatencySubject | None:
        """Return the calls of the row under the cursor; those of a transport if that grid has the focus."""
        transports = self.query_one("#transports", Grid)
        if transports.has_focus and transports.cursor_key is not None:
            return nfs_subject(NFS_TRANSPORTS.table, transports.cursor_key)
        key = self.query_one("#rows", Grid).cursor_key
        return None if key is None else nfs_subject(NFS_MOUNTS.table, key)

    def show_frame(self, frame: Frame) -> None:
        """Update the rows and what belongs to the mount under the cursor."""
        table = frame.tables.get(NFS_MOUNTS.table)
        grid = self.query_one("#rows", Grid)
        grid.waiting = _NONE_RECORDED if self.app_state.transport.seekable else _NONE_HERE
        fit_beside_charts(grid, table, self.query_one("#charts"), parts=3)
        if table is None:
            grid.show(None)
        else:
            grid.show(table, _labels(table))
        self._show_chosen(frame)

    def _show_chosen(self, frame: Frame) -> None:
        key = self.query_one("#rows", Grid).cursor_key
        self._show_transports(frame, key)
        self._show_verdict(frame, key)
        self.query_one(RowCharts).show_chosen(self.app_state, frame, self.query_one("#rows", Grid))

    def _show_verdict(self, frame: Frame, key: str | None) -> None:
        words = "" if key is None else nfs_verdicts(frame).get(mount_of(key), "")
        style = "bold $warning" if words else ""
        line = f"! {words}" if words else "nothing limits this mount that its counters show" if key else " "
        self.query_one("#verdict", TextLine).put(Content.assemble((f" {safe_text(line)}", style)))

    def _show_transports(self, frame: Frame, key: str | None) -> None:
        grid, table = self.query_one("#transports", Grid), frame.tables.get(NFS_TRANSPORTS.table)
        ours = None if table is None or key is None else _of_mount(table, mount_of(key))
        fit_beside_charts(grid, ours, self.query_one("#charts"), parts=4)
        if ours is None:
            grid.show(None)
            return
        grid.show(ours, _labels(ours))

    @on(Grid.RowHighlighted, "#rows")
    def _highlighted(self) -> None:
        if self.app_state.frame is not None:
            self._show_chosen(self.app_state.frame)


def _labels(table: FrameTable) -> dict[str, str]:
    return {key: safe_text(name) for key, name in zip(table.rows.keys, table.rows.names, strict=True)}


def _of_mount(table: FrameTable, mount: str) -> FrameTable:
    """Rows of the transports of one mount."""
    return table.taken([row for key, row in table.rows.positions.items() if mount_of(key) == mount])
