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
from engine.running.status import LoadState
from engine.text import safe_text
from tui.action import with_actions
from tui.app_state import AppState
from tui.history.subjects import row_of
from tui.keys import bindings_of
from tui.load.fleet_load_controller import FleetLoadController
from tui.screen_registry import HOSTS
from tui.screens.load.actions import LoadKeys, load_iops
from tui.screens.shared.base import View
from tui.text.columns import default_columns, figure_lines
from tui.text.format import span_text
from tui.text.glyphs import glyphs_of
from tui.widgets.grid.table import Grid
from tui.widgets.knobs import EffectPanel, KnobPanel, SlotLine, compose_knobs
from tui.widgets.line import TextLine

_NO_FLEET = "one host only: lunscope fleet watch shows several"
_TOTALS = ("iops", "bytes_per_s", "await_ms", "in_flight", "p99_ms", "load_iops", "load_await_ms")
_NAMED = 3
_HOT = 3
STATUS_PERIOD_S = 0.2


class HostsView(View):
    """A row per host, the total of all, and what is wrong with which; with the knobs of a load over all of them."""

    ENTRY = HOSTS
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(HOSTS.keyed)
    DEFAULT_CSS = """
    HostsView #total { height: 2; }
    HostsView #rows { height: 1fr; }
    HostsView #odd { height: 4; }
    HostsView.-tiny #odd { height: 1; }
    HostsView #knob_row { height: 6; }
    HostsView.-tall #knob_row { height: 8; }
    HostsView #load_message { height: 1; padding: 0 1; }
    HostsView.-narrow KnobPanel { width: 25; }
    HostsView.-load.-low #odd { height: 2; }
    HostsView.-flat #knob_row, HostsView.-tiny #knob_row, HostsView.-flat SlotLine, HostsView.-tiny SlotLine
        { display: none; }
    """

    def __init__(self, app_state: AppState) -> None:
        super().__init__(app_state)
        self._error = ""
        self._keys = with_actions(self, LoadKeys(self, lambda: self.driven, self.report, iops=self._iops))

    def compose_body(self) -> ComposeResult:
        """Total, the knobs of a load, hosts, and those that are not as they should be."""
        yield TextLine(" ", id="total")
        if self.driven is not None:
            yield from compose_knobs()
        yield Grid(FLEET_HOSTS.table, default_columns(FLEET_HOSTS.table), sort="iops", name_title="Host", id="rows")
        yield TextLine(" ", id="odd")

    def on_mount(self) -> None:
        """Start the load of `fleet run`, and update its state between frames."""
        if self.driven is None:
            return
        self.add_class("-load")
        self.set_interval(STATUS_PERIOD_S, self._tick)
        if self.driven.take_start():
            self.call_after_refresh(self._keys.action_load_start)

    # ------------------------------------------------------------------- load

    @property
    def driven(self) -> FleetLoadController | None:
        """The load over all hosts."""
        return self.app_state.fleet_load

    def report(self, error: str) -> None:
        """Show a refusal or error; an empty text clears the line."""
        self._error = error
        self._show_load()

    def _iops(self) -> float | None:
        """Return the rate of one host: its knobs are turned."""
        iops, load = load_iops(self.app_state), self.driven
        hosts = len(load.status.targets) if load is not None else 0
        return None if iops is None or not hosts else iops / hosts

    def _tick(self) -> None:
        if self.is_whole and self.is_current:
            self._show_load()

    def _show_load(self) -> None:
        load = self.driven
        if load is None or not self.is_whole:
            return
        status, job = load.status, load.job
        head, targets = f" {status.state.upper()} ", ", ".join(load.drive.paths[:1]) or "scratch files"
        more = f" and {len(load.drive.paths) - 1} more" if len(load.drive.paths) > 1 else ""
        ran = f"{span_text(status.elapsed_s)}, " if status.elapsed_s else ""
        hosts = f"{len(status.targets)} hosts, " if status.targets else ""
        words = f" {ran}{hosts}{safe_text(targets)}{more}, {job.access}; the knobs are of each host"
        self.query_one("#load_state", TextLine).put(Content.assemble((head, "bold reverse"), words))
        self.query_one(KnobPanel).show(load.knobs, len(job.targets), self.key_text)
        self.query_one(SlotLine).show(load.memory, load.knobs, self._keys.step_size, self.key_text)
        self.query_one("#load_message", TextLine).put(self._load_message(load))

    def _load_message(self, load: FleetLoadController) -> Content:
        """Return a refusal, else what the load waits for, else how exactly turns are at one time."""
        if self._error:
            return Content.assemble((safe_text(self._error), "bold $error"))
        status = load.status
        if status.message:
            style = "bold $error" if status.state is LoadState.FAILED else "$warning"
            return Content.assemble((safe_text(status.message), style))
        pending = "turning ... " if load.drive.is_turning and load.is_turned_live() else ""
        return Content.assemble((f"{pending}{safe_text(load.drive.clock_text)}", "dim"))

    # ------------------------------------------------------------------ hosts

    def show_frame(self, frame: Frame) -> None:
        """Update all of it."""
        if self.driven is not None:
            effect = self.app_state.history.load.effect(self.app_state.events.all(), frame.monotonic_ns)
            self.query_one(EffectPanel).show(effect, frame.monotonic_ns)
            self._show_load()
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
        if FLEET_HOSTS.table not in frame.tables:
            return Content(" ")
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
