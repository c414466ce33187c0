"""The form of the job on the Load screen: opened, filled, and taken back where the load refuses it."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress

from textual.widgets import ContentSwitcher, Input

from engine.errors import LunscopeError
from engine.job.describe import uses_policy
from engine.job.spec import JobSpec
from engine.running.status import LoadState
from tui.load.form import DESTROY, KEEP, has_policy, job_from
from tui.load.load_controller import BUSY_STATES, LoadController
from tui.screens.shared.base import View
from tui.screens.shared.dialogs import confirm_destroy
from tui.widgets.grid.table import Grid
from tui.widgets.load_form import Choice, LoadForm


class JobForm:
    """Takes the form over into the job, field by field."""

    def __init__(self, screen: View, report: Callable[[str], None]) -> None:
        """Name the screen, and what shows a refusal or error, where an empty text clears the line."""
        self._screen, self._report = screen, report
        self._refused_in: LoadState | None = None
        """State of the load in which it refused the form; None if the job matches the form."""
        self._opened: JobSpec | None = None
        """The job when the form was filled."""
        self._taken = 0
        """Number of the job that the form was filled with, see LoadController."""

    def follow(self, controller: LoadController | None) -> None:
        """Fill the form again if the job was set elsewhere."""
        if controller is not None and controller.taken != self._taken:
            self.take_back()
            self.fill(controller)

    def try_again(self, controller: LoadController) -> None:
        """Take the form once more if the load that refused it is in another state."""
        if self.is_open and self._refused_in not in {None, controller.status.state}:
            self.edited()

    def fill(self, controller: LoadController) -> None:
        """Show the job."""
        self._taken = controller.taken
        self._opened = controller.job
        form = self._screen.query_one(LoadForm)
        form.fill(controller.job, destroy_data=controller.permissions.destroy_data)
        form.show_policy(shown=uses_policy(controller.job))

    def refill(self) -> None:
        """Show the job in the form again: a knob was turned, by a key while no text field had the focus."""
        if self.is_open and self._screen.app_state.controller is not None:
            self._refused_in = None
            self.fill(self._screen.app_state.controller)

    @property
    def is_open(self) -> bool:
        """Whether the form is shown."""
        return self._screen.query_one("#lower", ContentSwitcher).current == "form"

    def action_load_edit(self) -> None:
        """Show the form, filled with the current job; while a load runs it says at once that it changes nothing."""
        controller = self._screen.app_state.controller
        if controller is None:
            return
        self.fill(controller)
        self.take_back()
        self._switch("form")
        self._screen.query_one("#targets", Input).focus()
        if controller.status.state in BUSY_STATES | {LoadState.RUNNING}:
            self.edited()

    def _switch(self, part: str) -> None:
        """Show the form or the load; on a low screen the form takes the room of the knobs, which it has as well."""
        self._screen.query_one("#lower", ContentSwitcher).current = part
        self._screen.set_class(part == "form", "-editing")

    def action_leave_form(self) -> None:
        """Go back from the form to the running load and the knobs."""
        self.take_back()
        self._switch("running")
        self._screen.query_one("#targets_grid", Grid).focus()

    def use_targets(self, texts: Sequence[str]) -> None:
        """Put chosen targets into the form."""
        self._screen.query_one("#targets", Input).value = shlex.join(texts)

    def edited(self) -> None:
        """Take the form over; what the load refuses is reported, and leaves the job as it was."""
        controller = self._screen.app_state.controller
        if controller is None:
            return
        form = self._screen.query_one(LoadForm)
        values = form.values()
        form.show_policy(shown=has_policy(values, controller.job))
        destroy = values["destroy"] == DESTROY
        if destroy and not controller.permissions.destroy_data:
            self._screen.app.push_screen(confirm_destroy(), functools.partial(self._destroy_answered, controller))
            return
        try:
            controller.edit(job_from(values, controller.job), destroy_data=destroy)
        except LunscopeError as error:
            self._refused_in = controller.status.state
            self._restore(controller)
            self._report(str(error))
        else:
            self._refused_in = None
            self._report("")

    def _restore(self, controller: LoadController) -> None:
        """Go back to the job that the form was opened with: of "5000", which is refused, "500" must not remain."""
        if self._opened is not None:
            with suppress(LunscopeError):  # A load runs: its job is still that one.
                controller.edit(self._opened, destroy_data=controller.permissions.destroy_data)

    def take_back(self) -> None:
        """Discard the refused form: the current job is unchanged."""
        if self._refused_in is not None:
            self._refused_in = None
            self._report("")

    def _destroy_answered(self, controller: LoadController, answer: str | None) -> None:
        """Accept the typed confirmation, or reset the field."""
        if answer is not None:
            controller.permit_destroying()
            self.edited()
        else:
            self._screen.query_one("#destroy", Choice).value = KEEP
