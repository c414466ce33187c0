"""The tuning drawer, and the watch over changes that are in force."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.text import safe_text
from tui.screens.shared.base import View

if TYPE_CHECKING:
    from tui.app.app import LunscopeApp

TUNE_CHECK_S = 1.0


class Tuning:
    """Opens the drawer; changes whose watchdog has failed are restored from then on."""

    def __init__(self, app: LunscopeApp) -> None:
        self._app, self._state = app, app.app_state
        self._checks_changes = False

    def action_view_tune(self) -> None:
        """Tunables of what is under the cursor."""
        from engine.tune.held import HeldChanges  # noqa: PLC0415 (as above)
        from tui.screens.tune.drawer import TuneDrawer  # noqa: PLC0415
        from tui.screens.tune.scopes import scopes_at  # noqa: PLC0415

        view, frame = self._app.screen, self._state.frame
        if isinstance(view, View) and frame is not None:
            if self._state.tuning is None and self._state.tune_root is not None:
                self._state.tuning = HeldChanges(self._state.tune_root)
            if not self._checks_changes:
                self._checks_changes = True
                self._app.set_interval(TUNE_CHECK_S, self._check_changes)
            group = view.process_scope(frame)
            scopes = scopes_at(view.load_device(), view.latency_subject(), group, frame.topology)
            self._app.push_screen(TuneDrawer(self._state, scopes))

    def _check_changes(self) -> None:
        """Restore changes whose watchdog has failed, and say so; in a thread, as the kernel may block it."""
        held = self._state.tuning
        if held is None or not held.has_ended:
            return

        def restore() -> None:
            for record in held.take_troubled():
                text = safe_text(f"tune change {record.number}: {'; '.join(record.problems)}")
                self._app.notify(text, severity="error", timeout=30, markup=False)

        self._app.run_worker(restore, thread=True, exclusive=True, group="tune")
