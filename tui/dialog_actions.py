"""Help, alerts and tunables, each imported when it is first shown; a mixin of the app."""

from __future__ import annotations

from tui.keys import BY_ID, keys_in_force
from tui.screens.base import View
from tui.settings_actions import SettingsActions


class DialogActions(SettingsActions):
    """Opens the dialogs of every screen, besides those of the other mixins."""

    def action_view_help(self) -> None:
        """Keys and figures, those of the current screen first."""
        from tui.screens.help import HelpScreen  # noqa: PLC0415 (it can wait until it is asked for)

        frame, view = self.app_state.frame, self.screen
        notices, losses = (frame.topology.host.notices, frame.losses) if frame else ((), {})
        keys = keys_in_force(BY_ID["view.help"], self.app_state.keys)
        entry = view.ENTRY if isinstance(view, View) else None
        self.push_screen(HelpScreen(self.keys_text, notices, losses, entry, keys))

    def action_view_alerts(self) -> None:
        """Rules of alerts and what is raised."""
        from tui.screens.alerts import AlertsDialog  # noqa: PLC0415 (as above)

        self.push_screen(AlertsDialog(self.app_state))

    def action_view_tune(self) -> None:
        """Tunables of what is under the cursor."""
        from engine.tune.held import HeldChanges  # noqa: PLC0415 (as above)
        from tui.screens.tune_drawer import TuneDrawer  # noqa: PLC0415
        from tui.tune.scopes import scopes_at  # noqa: PLC0415

        view, frame = self.screen, self.app_state.frame
        if isinstance(view, View) and frame is not None:
            if self.app_state.tuning is None and self.app_state.tune_root is not None:
                self.app_state.tuning = HeldChanges(self.app_state.tune_root)
            group = view.process_scope(frame)
            scopes = scopes_at(view.load_device(), view.latency_subject(), group, frame.topology)
            self.push_screen(TuneDrawer(self.app_state, scopes))
