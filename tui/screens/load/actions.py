"""Actions of the load screen: arm, start, stop, and turn knobs."""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from engine.errors import LunscopeError
from engine.job.describe import uses_policy
from engine.job.knobs import Knobs, StepContext, StepKey, StepSize, knob_rows
from engine.job.validate import validate
from engine.replacing import replace
from tui.app_state import AppState
from tui.load.knob_memory import KnobSlot
from tui.screens.load.confirm_write import when_typed
from tui.screens.shared.base import View
from tui.transport import LiveTransport

if TYPE_CHECKING:
    from tui.load.fleet_load_controller import FleetLoadController
    from tui.load.load_controller import LoadController
    from tui.screens.load.job_form import JobForm

    DrivenLoad: TypeAlias = LoadController | FleetLoadController
    """A load of this host, or one over the hosts of a fleet."""

TURNS: Mapping[str, StepKey] = {key.id: key for _, row in knob_rows() for key in row.keys}
"""Keys by the part of the action id after `knob.`."""


SIZES = tuple(StepSize)


class LoadKeys:
    """The keys that drive a load; what may block runs in threads that only post messages."""

    def __init__(
        self,
        screen: View,
        driven: Callable[[], DrivenLoad | None],
        report: Callable[[str], None],
        *,
        form: JobForm | None = None,
        iops: Callable[[], float | None] | None = None,
    ) -> None:
        """Name the screen, and how to get the load that its keys drive.

        Args:
            screen: where names are asked for.
            driven: returns the load; None if there is none.
            report: shows a refusal or error; an empty text clears the line.
            form: follows the knobs; None where the job cannot be edited.
            iops: returns the I/Os per second that a rate is counted in; those of the whole load by default.
        """
        self._screen, self._state = screen, screen.app_state
        self._driven, self._report, self._form = driven, report, form
        self._iops = iops or functools.partial(load_iops, screen.app_state)
        self.step_size = StepSize.NORMAL

    def _to_the_present(self) -> None:
        """Leave the past, so that one sees what a key does to the load."""
        if isinstance(self._state.transport, LiveTransport):
            self._state.transport.resume()

    def action_load_arm(self) -> None:
        """Check and prepare the targets."""
        self._to_the_present()
        controller = self._driven()
        if controller is not None:
            self._when_typed(controller.job.knobs, functools.partial(self._in_thread, controller.arm))

    def action_load_start(self) -> None:
        """Start the load."""
        self._to_the_present()
        controller = self._driven()
        if controller is not None:
            self._when_typed(controller.job.knobs, functools.partial(self._in_thread, controller.start))

    def action_load_stop(self) -> None:
        """Stop the load, or its preparation."""
        self._to_the_present()
        controller = self._driven()
        if controller is not None:
            self._in_thread(controller.stop)

    def _when_typed(self, knobs: Knobs, then: Callable[[], None]) -> None:
        """Continue once every name that these knobs need was typed."""
        controller = self._driven()
        assert controller is not None
        when_typed(self._screen.app, controller, knobs, then, self._report)

    def _in_thread(self, operation: Callable[[], None]) -> None:
        """Run a blocking call in a thread; a thread worker of Textual would block the exit.

        A form that is opened meanwhile stays open: typed text must not reach the knobs.
        """
        editing = self._is_editing

        def work() -> None:
            error = ""
            try:
                operation()
            except LunscopeError as refusal:
                error = str(refusal)
            except Exception as failure:
                error = f"{type(failure).__name__}: {failure}"
            self._screen.call_later(self._done, error, leaves_form=editing and not error)

        self._report("")
        threading.Thread(target=work, name="lunscope-load-screen", daemon=True).start()

    def _done(self, error: str, *, leaves_form: bool) -> None:
        """Report how arming, starting or stopping ended; `error` is empty on success."""
        if error or not self._is_editing:
            self._report(error)
        if leaves_form and self._form is not None:
            self._form.action_leave_form()

    @property
    def _is_editing(self) -> bool:
        return self._form is not None and self._form.is_open

    def action_turn_knob(self, name: str) -> None:
        """Turn a knob by one step; a turn that begins to write asks for names first."""
        controller = self._driven()
        if controller is None:
            return
        context = StepContext(len(controller.job.targets), self._iops(), controller.job.copies, self.step_size)
        knobs = TURNS[name].turned(controller.knobs, context)
        if knobs.policy is not controller.knobs.policy and not uses_policy(controller.job):
            self._to_the_present()
            self._report("only one path to the data: a policy selects among paths (--lun) or copies (--mirror)")
        else:
            self._turn_to(controller, knobs, controller.memory.turned)

    def action_load_step(self) -> None:
        """Take the next size of the steps of knobs."""
        self.step_size = SIZES[(SIZES.index(self.step_size) + 1) % len(SIZES)]
        self._report("")

    def action_load_undo(self) -> None:
        """Turn the knobs back to what they were before the last turn."""
        controller = self._driven()
        if controller is None:
            return
        before = controller.memory.before(controller.knobs)
        if before is None:
            self._report("no turn to undo")
        else:
            self._turn_to(controller, before, lambda _now: controller.memory.undone(), undoes=True)

    def action_load_store_a(self) -> None:
        """Store the knobs in slot A."""
        self._store(KnobSlot.A)

    def action_load_store_b(self) -> None:
        """Store the knobs in slot B."""
        self._store(KnobSlot.B)

    def _store(self, slot: KnobSlot) -> None:
        controller = self._driven()
        if controller is not None:
            self._to_the_present()
            controller.memory.store(slot, controller.knobs)
            self._report("")

    def action_load_flip(self) -> None:
        """Turn the knobs to those of the other slot."""
        controller = self._driven()
        if controller is None:
            return
        slot = controller.memory.next_slot(controller.knobs)
        stored = None if slot is None else controller.memory.stored(slot)
        if slot is None or stored is None:
            keys = ", ".join(f"{self._screen.key_text(f'load.store_{each.lower()}')} in {each}" for each in KnobSlot)
            self._report(f"no other knobs are stored to flip to: store those in force with {keys}")
            return
        knobs = replace(stored, stripe_width=min(stored.stripe_width, len(controller.job.targets)))

        try:
            validate(replace(controller.job, knobs=knobs))
        except LunscopeError as error:
            self._report(f"{slot}: {error}")
        else:
            self._turn_to(controller, knobs, lambda before: controller.memory.flipped(slot, before, knobs))

    def _turn_to(
        self, controller: DrivenLoad, knobs: Knobs, then: Callable[[Knobs], None], *, undoes: bool = False
    ) -> None:
        """Turn to these knobs, asking for names first if that begins to write; `then` gets the knobs before."""
        self._to_the_present()
        apply = functools.partial(self._apply, controller, knobs, then, undoes=undoes)
        if knobs == controller.knobs:
            self._report("the knob is at its limit")
        elif controller.needs_restart(knobs):
            self._report("the targets are open for reading only: stop, turn this knob, and start again")
        elif controller.is_turned_live():
            self._when_typed(knobs, apply)
        else:
            apply()

    def _apply(self, controller: DrivenLoad, knobs: Knobs, then: Callable[[Knobs], None], *, undoes: bool) -> None:
        def turned(error: str) -> None:
            if error:
                self._screen.call_later(self._refused, error, knobs if undoes else None)

        before = controller.knobs
        try:
            controller.turn(knobs, turned)
        except LunscopeError as error:
            self._report(str(error))
        else:
            then(before)
            self._report("")
            if self._form is not None:
                self._form.refill()

    def _refused(self, error: str, not_undone: Knobs | None) -> None:
        """Report why the load keeps its knobs, and remember those that an undo was to bring back."""
        driven = self._driven()
        if not_undone is not None and driven is not None:
            driven.memory.turned(not_undone)
        self._report(error)


def load_iops(state: AppState) -> float | None:
    """I/Os per second now, as a rate of the load would count them."""
    total = state.frame.tables.get("load_total") if state.frame else None
    iops = total.value("iops", 0) if total is not None and len(total.rows) else math.nan
    return iops if math.isfinite(iops) else None
