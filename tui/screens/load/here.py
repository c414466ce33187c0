"""From a disk under the cursor, or from the list of targets, to a job on the load screen; nothing is started."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from textual.app import App

from engine.errors import LunscopeError
from engine.job.spec import TargetSpec
from engine.job.target_text import format_target, parse_target
from engine.text import safe_text
from tui.app_state import AppState
from tui.load.candidates import candidates, load_targets, of_recent, target_of
from tui.load.load_controller import LoadController
from tui.screen_registry import LOAD
from tui.screens.load.target_picker import TargetPicker
from tui.screens.shared.base import View
from tui.screens.shared.chooser import Chooser, ChooserLine

REPLAYED = "a replay drives no load: its disks are those of the recording, which may be of another host"
NO_LOAD = "no load can be driven from here: use lunscope watch or run"


class LoadHere:
    """One request to put a load on something; each step that asks continues in a callback."""

    def __init__(self, app: App[None], app_state: AppState) -> None:
        self._app = app
        self._state = app_state

    def begin(self, view: View) -> None:
        """Put a load on the disk under the cursor of a view, or ask for one where there is none."""
        controller = self._state.controller
        if controller is None:
            self._say(REPLAYED if self._state.transport.seekable else NO_LOAD)
            return
        try:
            controller.require_free()
        except LunscopeError as error:
            self._say(str(error))
            return
        key = view.load_device()
        if key is None:
            self._choose(controller, lambda texts: self._take(controller, texts))
        else:
            self._on_device(controller, key)

    def choose(self, then: Callable[[Sequence[str]], None]) -> None:
        """Ask for targets from the list."""
        if self._state.controller is not None:
            self._choose(self._state.controller, then)

    def _say(self, text: str) -> None:
        self._app.notify(safe_text(text), severity="warning", markup=False)

    def _on_device(self, controller: LoadController, key: str) -> None:
        frame = self._state.frame
        if frame is None:
            return
        try:
            found = load_targets(key, frame.topology)
        except LunscopeError as error:
            self._say(str(error))
            return
        if len(found) == 1:
            self._take(controller, (target_of(found[0]),))
            return
        lines = [ChooserLine(f"{one.name} {one.about}", one, target_of(one)) for one in found]
        title = "Load on which of them? It only reads, and starts nothing"
        self._app.push_screen(
            Chooser(title, lines, verb="choose"),
            lambda one: None if one is None else self._take(controller, (target_of(one),)),
        )

    def _choose(self, controller: LoadController, then: Callable[[Sequence[str]], None]) -> None:
        frame = self._state.frame
        offered = () if frame is None else candidates(frame.topology)
        known = {one.target for one in offered}
        used = [path for path in controller.recent.names if path not in known]
        listed = (*offered[:1], *map(of_recent, used), *offered[1:])
        self._app.push_screen(
            TargetPicker(listed, controller),
            lambda texts: None if texts is None else then(texts),
        )

    def _take(self, controller: LoadController, texts: Sequence[str]) -> None:
        """Set up the job, asking first if that replaces a load."""
        try:
            targets = tuple(map(parse_target, texts))
        except LunscopeError as error:
            self._say(str(error))
            return
        if not controller.has_load:
            self._show(controller, targets)
            return
        present = _names(controller.job.targets)
        lines = [
            ChooserLine(f"Keep the load on {present}", value=False),
            ChooserLine(f"Stop it, then set up {_names(targets)}; it is not started", value=True),
        ]
        self._app.push_screen(
            Chooser(f"A load is {controller.status.state} on {present}", lines, verb="choose"),
            lambda stops: self._stop_first(controller, targets) if stops else None,
        )

    def _stop_first(self, controller: LoadController, targets: tuple[TargetSpec, ...]) -> None:
        def work() -> None:
            error = ""
            try:
                controller.stop()
            except LunscopeError as refusal:
                error = str(refusal)
            with suppress(RuntimeError):  # The app was left meanwhile.
                self._app.call_from_thread(self._stopped, controller, targets, error)

        self._app.switch_mode(LOAD.id)
        threading.Thread(target=work, name="lunscope-load-here", daemon=True).start()

    def _stopped(self, controller: LoadController, targets: tuple[TargetSpec, ...], error: str) -> None:
        if error:
            self._say(error)
        else:
            self._show(controller, targets)

    def _show(self, controller: LoadController, targets: tuple[TargetSpec, ...]) -> None:
        try:
            controller.read_from(targets)
        except LunscopeError as error:
            self._say(str(error))
        else:
            self._app.switch_mode(LOAD.id)


def _names(targets: Sequence[TargetSpec]) -> str:
    more = f" and {len(targets) - 1} more" if len(targets) > 1 else ""
    return safe_text(format_target(targets[0])) + more
