"""Help, alerts and tunables, each imported when it is first shown; a mixin of the app."""

from __future__ import annotations

from collectors.totals.level import WHOLE_HOST, CountSubject
from engine.text import safe_text
from tui.app.settings_editor import SettingsActions
from tui.keys import BY_ID, keys_in_force
from tui.screens.shared.base import View
from tui.screens.shared.pages import open_page

TUNE_CHECK_S = 1.0


class DialogActions(SettingsActions):
    """Opens the dialogs of every screen, besides those of the other mixins."""

    _checks_changes = False

    def action_view_help(self) -> None:
        """Keys and figures, those of the current screen first."""
        from tui.screens.help.screen import HelpScreen  # noqa: PLC0415 (it can wait until it is asked for)

        frame, view = self.app_state.frame, self.screen
        of_host, losses = (frame.topology.host.notices, frame.losses) if frame else ((), {})
        notices = (*self.app_state.wrong_settings, *of_host)
        keys = keys_in_force(BY_ID["view.help"], self.app_state.keys)
        entry = view.ENTRY if isinstance(view, View) else None
        self.push_screen(HelpScreen(self.keys_text, notices, losses, entry, keys))

    def action_view_sheet(self) -> None:
        """All that is known of the LUN, path or port under the cursor."""
        from tui.screens.paths.sheet import SheetView, has_sheet, lun_below  # noqa: PLC0415 (as above)

        view, frame = self.screen, self.app_state.frame
        subject = view.sheet_subject() if isinstance(view, View) else None
        if frame is None or isinstance(view, SheetView):
            return
        if subject is not None and subject[0] == "disks":
            subject = "disks", lun_below(frame.topology, subject[1]) or subject[1]
        if subject is None or not has_sheet(frame.topology, *subject):
            self.notify("no sheet: put the cursor on a LUN, path or HBA port", timeout=4, markup=False)
            return
        open_page(self, SheetView(self.app_state, *subject))

    def action_session_clear(self) -> None:
        """Count what is under the cursor from now on; the host if nothing is."""
        from tui.screens.paths.sheet_data import subject_of  # noqa: PLC0415 (as above)

        view, frame = self.screen, self.app_state.frame
        if not isinstance(view, View) or frame is None:
            return
        selected = view.sheet_subject()
        self._clear(WHOLE_HOST if selected is None else subject_of(frame.topology, *selected))

    def action_clear_host(self) -> None:
        """Count the whole host from now on."""
        self._clear(WHOLE_HOST)

    def _clear(self, subject: CountSubject) -> None:
        if not self.app_state.transport.seekable:
            self.app_state.history.totals.clear(subject)
        self.add_note(f"counters of {subject.words} cleared", self.clearing_moment(), **subject.mark)

    def action_view_alerts(self) -> None:
        """Rules of alerts and what is raised."""
        from tui.screens.alerts import AlertsDialog  # noqa: PLC0415 (as above)

        self.push_screen(AlertsDialog(self.app_state))

    def action_view_tune(self) -> None:
        """Tunables of what is under the cursor."""
        from engine.tune.held import HeldChanges  # noqa: PLC0415 (as above)
        from tui.screens.tune.drawer import TuneDrawer  # noqa: PLC0415
        from tui.screens.tune.scopes import scopes_at  # noqa: PLC0415

        view, frame = self.screen, self.app_state.frame
        if isinstance(view, View) and frame is not None:
            if self.app_state.tuning is None and self.app_state.tune_root is not None:
                self.app_state.tuning = HeldChanges(self.app_state.tune_root)
            if not self._checks_changes:
                self._checks_changes = True
                self.set_interval(TUNE_CHECK_S, self._check_changes)
            group = view.process_scope(frame)
            scopes = scopes_at(view.load_device(), view.latency_subject(), group, frame.topology)
            self.push_screen(TuneDrawer(self.app_state, scopes))

    def _check_changes(self) -> None:
        """Restore changes whose watchdog has failed, and say so; in a thread, as the kernel may block it."""
        held = self.app_state.tuning
        if held is None or not held.has_ended:
            return

        def restore() -> None:
            for record in held.take_troubled():
                text = safe_text(f"tune change {record.number}: {'; '.join(record.problems)}")
                self.notify(text, severity="error", timeout=30, markup=False)

        self.run_worker(restore, thread=True, exclusive=True, group="tune")
