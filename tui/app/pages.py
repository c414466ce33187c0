"""The screens, pages and dialogs that keys open; each is imported when it is first shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.screen import ModalScreen

from tui.app_state import LatencyJump
from tui.keys import BY_ID, keys_in_force
from tui.screen_registry import LATENCY
from tui.screens.shared.base import View
from tui.screens.shared.pages import open_page
from tui.screens.shared.process_scope import EVERYTHING
from tui.widgets.chart.widget import Chart

if TYPE_CHECKING:
    from tui.app.app import LunscopeApp


class Pages:
    """Opens what a key names, about what is selected on the screen."""

    def __init__(self, app: LunscopeApp) -> None:
        self._app, self._state = app, app.app_state

    def action_show_screen(self, screen_id: str) -> None:
        """Show a registered screen; if it is covered by a page that was opened from it, close the page."""
        if self._app.current_mode != screen_id:
            self._app.switch_mode(screen_id)
            return
        while len(self._app.screen_stack) > 1 and not isinstance(self._app.screen, ModalScreen):
            self._app.pop_screen()

    def action_view_ios(self) -> None:
        """Show the slowest I/Os of the screen's subject, at the time under the cursor if there is one."""
        view, chart = self._app.screen, self._app.focused
        subject = view.latency_subject() if isinstance(view, View) else None
        moment_ns = chart.inspected_ns if isinstance(chart, Chart) else None
        self._state.jump = LatencyJump(subject, moment_ns)
        self.action_show_screen(LATENCY.id)
        self._app.paint()

    def action_view_processes(self) -> None:
        """Show the processes with I/O on what is selected on the screen; on all devices if nothing is."""
        from tui.screens.processes import ProcessesView  # noqa: PLC0415 (it can wait until it is asked for)

        view, frame = self._app.screen, self._state.frame
        if isinstance(view, View) and not isinstance(view, ProcessesView) and frame is not None:
            open_page(self._app, ProcessesView(self._state, view.process_scope(frame) or EVERYTHING))

    def action_view_caches(self) -> None:
        """Show the caches of the host."""
        from tui.screens.caches import CachesView  # noqa: PLC0415 (as above)

        if isinstance(self._app.screen, View):
            open_page(self._app, CachesView(self._state))

    def action_view_nfs(self) -> None:
        """Show the NFS mounts of the host."""
        from tui.screens.nfs import NfsView  # noqa: PLC0415 (as above)

        if isinstance(self._app.screen, View):
            open_page(self._app, NfsView(self._state))

    def action_view_hosts(self) -> None:
        """Show the hosts of a fleet, and the figures of all of them again if one was shown alone."""
        from tui.screens.hosts import HostsView  # noqa: PLC0415 (as above)

        fleet = self._state.fleet
        if fleet is not None and fleet.focus is not None:
            fleet.set_focus(None)
        if isinstance(self._app.screen, View):
            open_page(self._app, HostsView(self._state))

    def action_view_sheet(self) -> None:
        """All that is known of the LUN, path or port under the cursor."""
        from tui.screens.paths.sheet import SheetView, has_sheet, lun_below  # noqa: PLC0415 (as above)

        view, frame = self._app.screen, self._state.frame
        subject = view.sheet_subject() if isinstance(view, View) else None
        if frame is None or isinstance(view, SheetView):
            return
        if subject is not None and subject[0] == "disks":
            subject = "disks", lun_below(frame.topology, subject[1]) or subject[1]
        if subject is None or not has_sheet(frame.topology, *subject):
            self._app.notify("no sheet: put the cursor on a LUN, path or HBA port", timeout=4, markup=False)
            return
        open_page(self._app, SheetView(self._state, *subject))

    def action_load_here(self) -> None:
        """Set up a load that reads the disk under the cursor, or ask for targets; nothing is started."""
        from tui.screens.load.here import LoadHere  # noqa: PLC0415 (as above)

        if isinstance(self._app.screen, View):
            LoadHere(self._app, self._state).begin(self._app.screen)

    def action_view_help(self) -> None:
        """Keys and figures, those of the current screen first."""
        from tui.screens.help.screen import HelpScreen  # noqa: PLC0415 (as above)

        frame, view = self._state.frame, self._app.screen
        of_host, losses = (frame.topology.host.notices, frame.losses) if frame else ((), {})
        notices = (*self._state.wrong_settings, *of_host)
        keys = keys_in_force(BY_ID["view.help"], self._state.keys)
        entry = view.ENTRY if isinstance(view, View) else None
        self._app.push_screen(HelpScreen(self._app.palette.keys_text, notices, losses, entry, keys))

    def action_view_alerts(self) -> None:
        """Rules of alerts and what is raised."""
        from tui.screens.alerts import AlertsDialog  # noqa: PLC0415 (as above)

        self._app.push_screen(AlertsDialog(self._state))
