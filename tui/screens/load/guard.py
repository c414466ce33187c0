"""The guard's answers on the load screen: asked in a thread whenever other targets are chosen."""

from __future__ import annotations

from collections.abc import Sequence

from textual.timer import Timer

from engine.errors import LunscopeError
from engine.guard.answers import GuardAnswer
from engine.job.spec import JobSpec, Mode, Permissions, TargetSpec
from engine.job.target_text import format_target
from engine.newest_work import PATIENCE_S, NewestWork
from engine.text import safe_text
from tui.load.load_controller import LoadController
from tui.screens.shared.base import View
from tui.widgets.guard_panel import FEW_LINES, MOST_LINES, GuardPanel

TYPING_S = 0.3
"""How long text must stay the same until the guard is asked."""
ROOMY = 30
"""Lines of a screen from which the panel may be high."""
_Asked = tuple[tuple[TargetSpec, ...], "int | None", Mode, Permissions]


class GuardAnswers:
    """Asks the guard about the targets of a job that does not run; shows nothing while one does."""

    def __init__(self, screen: View) -> None:
        self._screen, self._state = screen, screen.app_state
        self._asked: _Asked | None = None
        self._answers: Sequence[GuardAnswer] | None = None
        self._work = NewestWork("lunscope-guard", PATIENCE_S)
        self._pause: Timer | None = None

    def forget(self) -> None:
        """Ask again: what uses a target may have changed meanwhile."""
        self._asked = None

    def show(self) -> None:
        """Ask about other targets than before, and show what is known of them."""
        controller = self._state.controller
        panel = self._screen.query_one(GuardPanel)
        is_due = controller is not None and not self._state.is_rewound and not controller.has_load
        panel.set_class(not is_due, "-off")
        if controller is None or not is_due:
            self._asked = None
            return
        job = controller.job
        asked = (job.targets, job.size_bytes, job.knobs.mode, controller.permissions)
        if asked != self._asked:
            self._asked, self._answers = asked, None
            self._ask_soon(controller, job)
        panel.show(job.targets, self._answers, MOST_LINES if self._screen.size.height >= ROOMY else FEW_LINES)

    def _ask_soon(self, controller: LoadController, job: JobSpec) -> None:
        if self._pause is not None:
            self._pause.stop()
        self._pause = self._screen.set_timer(TYPING_S, lambda: self._ask(controller, job))

    def _ask(self, controller: LoadController, job: JobSpec) -> None:
        asked = self._asked
        if asked is None or asked[0] != job.targets:
            return
        permissions = asked[-1]

        def work() -> None:
            try:
                answers = controller.guard.answers(job, permissions)
            except (LunscopeError, OSError) as error:
                names = " ".join(map(format_target, job.targets))
                answers = (GuardAnswer(safe_text(names), None, str(error), str(error)),)
            self._screen.call_later(self._answered, asked, answers)

        self._work.request(work)

    def _answered(self, asked: _Asked, answers: Sequence[GuardAnswer]) -> None:
        if asked == self._asked and self._screen.is_whole:
            self._answers = answers
            self.show()
