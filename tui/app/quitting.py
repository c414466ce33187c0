"""Quit: at once, after a question, or when outstanding I/Os are given up."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from engine.backend.outstanding import waiting_text
from engine.running.status import LoadState
from tui.load.load_controller import BUSY_STATES, LIVE_STATES, LoadController
from tui.screens.shared.base import View
from tui.screens.shared.dialogs import TypeToConfirm

if TYPE_CHECKING:
    from tui.app.app import LunscopeApp


class Quitting:
    """The end of the screens, and the message on I/Os that hold it up."""

    def __init__(self, app: LunscopeApp) -> None:
        self._app, self._state = app, app.app_state
        self._leaving = self._named_waits = False

    def action_session_quit(self) -> None:
        """Quit; ask first if the load writes, else stop it."""
        if not self._writes():
            self._leave()
            return
        text = "The load is writing. Type quit to stop it and leave:"
        question = TypeToConfirm("Quit", text, expected="quit", warning="")
        self._app.push_screen(question, self._quit_if)

    def _writes(self) -> bool:
        """Whether a load runs that writes, on this host or those of a fleet."""
        controller, fleet_load = self._state.controller, self._state.fleet_load
        if fleet_load is not None and fleet_load.writes:
            return True
        return (
            controller is not None and controller.status.state is LoadState.RUNNING and controller.knobs.read_pct < 100
        )

    def _quit_if(self, answer: str | None) -> None:
        if answer:
            self._leave()
        else:
            self._app.notify("quit not typed: the load continues", markup=False)

    def _leave(self) -> None:
        """Quit at once, or with I/Os outstanding when they are given up: at the limit, or when asked again."""
        controller = self._state.controller
        if (
            controller is None
            or not controller.status.outstanding
            or controller.status.state not in LIVE_STATES | BUSY_STATES
        ):
            self._app.exit()
        elif self._leaving:
            controller.control.abandon()
        else:
            self._leaving = True
            text = f"{waiting_text(controller.status.outstanding)}: quit again to give up"
            self._app.notify(text, severity="warning", timeout=controller.job.give_up_s, markup=False)
            threading.Thread(
                target=self._stop_and_leave, args=(controller,), name="lunscope-leave", daemon=True
            ).start()

    def _stop_and_leave(self, controller: LoadController) -> None:
        controller.control.close()
        with suppress(RuntimeError):  # The app was left meanwhile, by a signal.
            self._app.call_from_thread(self._app.exit)

    def name_waits(self) -> None:
        """Update the message on outstanding I/Os between frames."""
        controller = self._state.controller
        waits = controller is not None and bool(controller.status.outstanding)
        # Timers also run while a screen is only half there, and when none is left because the app ends.
        top = self._app.screen_stack[-1] if self._app.screen_stack else None
        if (waits or self._named_waits) and isinstance(top, View) and top.is_whole:
            top.show_note()
        self._named_waits = waits
