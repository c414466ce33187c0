"""Hosts of a fleet: totals, hot hosts and disks, who is missing; one host on all screens."""

from __future__ import annotations

import math
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.geometry import Size

from collectors.fleet.hosts_text import hot_disks, missing_parts, odd_hosts
from collectors.model import Frame, FrameTable
from collectors.tables.fleet.schema import STATES
from collectors.tables.fleet.subject import FLEET_HOSTS, FLEET_TOTAL
from engine.text import safe_text
from tui.app_state import AppState
from tui.history.subjects import row_of
from tui.keys import bindings_of
from tui.screen_registry import HOSTS
from tui.screens.base import View
from tui.text.columns import default_columns, figure_lines
from tui.text.glyphs import glyphs_of
from tui.widgets.grid.table import Grid
from tui.widgets.line import TextLine

_NO_FLEET = "one host only: lunscope fleet watch shows several"
_TOTALS = ("iops", "bytes_per_s", "await_ms", "in_flight", "p99_ms", "load_iops", "load_await_ms")
_NAMED = 3
_HOT = 3


class HostsView(View):
    """A row per host, the total of all, and what is wrong with which."""

    ENTRY = HOSTS
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(HOSTS.actions)
    DEFAULT_CSS = """
    HostsView #total { height: 2; }
    HostsView #rows { height: 1fr; }
    HostsView #odd { height: 4; }
    HostsView.-tiny #odd { height: 1; }
    """

    def __init__(self, app_state: AppState) -> None:
        super().__init__(app_state)

    def compose_body(self) -> ComposeResult:
        """Total, hosts, and those that are not as they should be."""
        yield TextLine(" ", id="total")
        yield Grid(FLEET_HOSTS.table, default_columns(FLEET_HOSTS.table), sort="iops", name_title="Host", id="rows")
        yield TextLine(" ", id="odd")

    def show_frame(self, frame: Frame) -> None:
        """Update all of it."""
        grid, table = self.query_one("#rows", Grid), frame.tables.get(FLEET_HOSTS.table)
        grid.waiting, grid.empty_text = _NO_FLEET, "no host"
        grid.show(table, None if table is None else self._labels(table))
        self.query_one("#total", TextLine).put(self._total(frame, table))
        self.query_one("#odd", TextLine).put(self._oddities(frame))

    def _labels(self, table: FrameTable) -> dict[str, str]:
        """Names of hosts, with the state of those that are not live."""
        fleet = self.app_state.fleet
        if fleet is None:
            return {key: safe_text(key) for key in table.rows.keys}
        hosts = fleet.controller.hosts
        return {
            key: safe_text(key) if hosts[key].state.value == STATES[2] else f"{safe_text(key)} ({hosts[key].state})"
            for key in table.rows.keys
            if key in hosts
        }

    def _total(self, frame: Frame, table: FrameTable | None) -> Content:
        total = frame.tables.get(FLEET_TOTAL.table)
        if table is None or total is None:
            return Content(f" {_NO_FLEET}")
        known = sum(1 for value in table.columns["iops"] if not math.isnan(value))
        part = "all hosts" if known == len(table.rows) else f"partial: {known} of {len(table.rows)} hosts"
        room = Size(self.size.width, 1)
        figures = figure_lines(total, FLEET_TOTAL.table, 0, _TOTALS, room=room, glyphs=glyphs_of(self))
        return Content.assemble((f" {part}\n", "bold"), figures)

    def _oddities(self, frame: Frame) -> Content:
        """Hot disks, and the hosts that are missing or odd, each with its reason."""
        hot = ", ".join(
            f"{safe_text(host)} {safe_text(disk)} {busy:.0f} %" for host, disk, busy, _ in hot_disks(frame, _HOT)
        )
        lines = [f" hot disks: {hot}" if hot else " no disk is busy"]
        fleet = self.app_state.fleet
        if fleet is not None:
            hosts = fleet.controller.hosts
            odd = odd_hosts(hosts) | {
                name: why for name, why in missing_parts(frame, hosts).items() if name not in odd_hosts(hosts)
            }
            lines += [f" {safe_text(name)}: {safe_text(why)}" for name, why in list(odd.items())[:_NAMED]]
            if len(odd) > _NAMED:
                lines[-1] += f" (and {len(odd) - _NAMED} more hosts)"
        return Content("\n".join(lines))

    @on(Grid.RowSelected, "#rows")
    def action_hosts_open(self) -> None:
        """Show the host under the cursor on all screens, with all that its agent reads."""
        fleet, frame = self.app_state.fleet, self.app_state.frame
        key = self.query_one("#rows", Grid).cursor_key
        table = None if frame is None else frame.tables.get(FLEET_HOSTS.table)
        if key is None or row_of(key, table) is None:
            return
        if fleet is None:
            self.notify("the recording of a fleet has the disks of all hosts only", markup=False)
            return
        if not fleet.controller.hosts[key].is_connected:
            self.notify(
                f"{safe_text(key)} is not connected: {safe_text(fleet.controller.hosts[key].reason)}", markup=False
            )
            return
        fleet.set_focus(key)
        self.notify(f"{safe_text(key)} alone; {self.key_text('view.hosts')} shows all hosts again", markup=False)
        self.app.pop_screen()

    def action_hosts_back(self) -> None:
        """Return to the previous screen: the disks of all hosts."""
        self.app.pop_screen()
