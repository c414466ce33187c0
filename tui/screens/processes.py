"""Processes with I/O on what was selected, and the devices of a process."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.geometry import Size

from collectors.latency.subjects import LatencySubject, disk_subject
from collectors.model import Frame
from collectors.registry import fields_of
from collectors.tables.process_io.schema import parts_of
from collectors.tables.process_io.subject import PROCESS_IOS
from engine.text import safe_text
from tui.app_state import AppState
from tui.history.subjects import row_of
from tui.keys import bindings_of
from tui.screen_registry import PROCESSES
from tui.screens.details import detail_view
from tui.screens.shared.base import View
from tui.screens.shared.pages import open_page
from tui.screens.shared.process_scope import EVERYTHING, Scope, row_labels, shown_rows, summary, why_none
from tui.text.columns import default_columns, figure_lines
from tui.text.glyphs import glyphs_of
from tui.widgets.grid.table import Grid
from tui.widgets.line import TextLine


class ProcessesView(View):
    """A row per process, or per process and device, and the figures of the one under the cursor."""

    ENTRY = PROCESSES
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(PROCESSES.actions)
    DEFAULT_CSS = """
    ProcessesView #rows { height: 1fr; }
    ProcessesView #chosen { height: 3; }
    ProcessesView.-tiny #summary, ProcessesView.-tiny #chosen { display: none; }
    """

    def __init__(self, app_state: AppState, scope: Scope) -> None:
        super().__init__(app_state)
        self._selected = scope
        self._scope = scope

    @property
    def scope(self) -> Scope:
        """What is shown."""
        return self._scope

    def compose_body(self) -> ComposeResult:
        """Summary, grid, and the row under the cursor."""
        yield TextLine(" ", id="summary")
        columns = default_columns(PROCESS_IOS.table)
        yield Grid(PROCESS_IOS.table, columns, sort="iops", name_title=self._name_title, name_part=2, id="rows")
        yield TextLine(" ", id="chosen", classes="extra")

    @property
    def page_subject(self) -> object:
        """What it was opened for."""
        return self._selected

    @property
    def _name_title(self) -> str:
        if self._scope.submitter:
            return "Device"
        return "Process" if len(self._scope.disks) == 1 else "Process and device"

    def show_frame(self, frame: Frame) -> None:
        """Update summary, rows and the row under the cursor."""
        grid = self.query_one("#rows", Grid)
        table = shown_rows(frame, self._scope)
        grid.set_name_title(self._name_title)
        grid.waiting, grid.empty_text = why_none(frame), "no I/O in this interval"
        if table is None:
            grid.show(None)
            self.query_one("#summary", TextLine).put(f" {why_none(frame)}")
        else:
            grid.show(table, row_labels(table.rows, frame.topology, self._scope))
            self.query_one("#summary", TextLine).put(f" {summary(table, self._scope)}")
        self._show_chosen(frame)

    def _show_chosen(self, frame: Frame) -> None:
        line, key = self.query_one("#chosen", TextLine), self.query_one("#rows", Grid).cursor_key
        table = frame.tables.get(PROCESS_IOS.table)
        row = row_of(key, table)
        if table is None or row is None:
            line.put(" ")
            return
        fields = [field.id for field in fields_of(PROCESS_IOS.table) if field.id != "cgroup"]
        room = Size(self.size.width, 2)
        figures = figure_lines(table, PROCESS_IOS.table, row, fields, room=room, glyphs=glyphs_of(self))
        name = PROCESS_IOS.labels(table.rows, frame.topology)[row]
        line.put(Content.assemble((f" {name}\n", "bold"), figures))

    @on(Grid.RowHighlighted, "#rows")
    def _highlighted(self) -> None:
        if self.app_state.frame is not None:
            self._show_chosen(self.app_state.frame)

    def _cursor(self) -> tuple[str, str] | None:
        """Keys of device and process under the cursor."""
        key = self.query_one("#rows", Grid).cursor_key
        return None if key is None else parts_of(key)

    def latency_subject(self) -> LatencySubject | None:
        """Return the device under the cursor: latencies over time are not known by process."""
        chosen, frame = self._cursor(), self.app_state.frame
        return None if chosen is None or frame is None else disk_subject(chosen[0], frame)

    @on(Grid.RowSelected, "#rows")
    def action_processes_open(self) -> None:
        """Show the devices of the process, or the details of the device; a focused grid handles Enter first."""
        chosen, frame = self._cursor(), self.app_state.frame
        if chosen is None or frame is None:
            return
        disk, submitter = chosen
        if not self._scope.submitter:
            key = self.query_one("#rows", Grid).cursor_key
            table = frame.tables[PROCESS_IOS.table]
            row = row_of(key, table)
            name = submitter if row is None else table.rows.names[row]
            open_page(self.app, ProcessesView(self.app_state, Scope(safe_text(name), submitter=submitter)))
            return
        for name in ("disks", "paths"):
            if row_of(disk, frame.tables.get(name)) is not None:
                open_page(self.app, detail_view(self.app_state, name, disk))
                return
        self.notify("this device is gone", markup=False)

    def action_processes_every(self) -> None:
        """Show all processes of the host, or again those of what was selected."""
        self._scope = EVERYTHING if self._scope == self._selected else self._selected
        self.refresh_view()
