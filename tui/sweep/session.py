"""A live measurement behind the screen: it prepares the load, measures in a thread of its own, and sets knobs."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from engine.background_call import BackgroundCall
from engine.errors import LunscopeError, StoppedError
from engine.job.knobs import Knobs
from engine.job.spec import JobSpec
from engine.replacing import replace
from engine.running.status import LoadState
from engine.study.order import Study
from engine.study.runner import StudyRunner
from tui.load.load_controller import BUSY_STATES, LIVE_STATES, LoadController
from tui.sweep.state import RUNNING_PHASES, StudyState, SweepPhase

LAST_POINT_S = 2.0
"""How long a measurement may take to end when the screens are left."""


class _SetKnobs(Struct, frozen=True):
    """Knobs to set."""

    name: str
    knobs: Knobs
    key: object
    """What of the screen they belong to: a point, or a rate."""
    job: JobSpec | None = None
    """Job that they are of, where points have different ones."""


class StudySession:
    """Owns a measurement from its first trial to its answer; no member blocks but `finish`.

    While it measures, the knobs of the load are its own: `LoadController` refuses to turn them.
    """

    def __init__(self, study: Study, controller: LoadController) -> None:
        self.study, self.controller, self.part = study, controller, study.part
        self._trials = study.trials
        self.runner: StudyRunner[Any, Any, Any] = study.over(
            controller.control, self._keep, controller.control.note_load, controller.watch
        )
        self._lock = threading.Lock()
        """Guards what is wanted, and the end that takes it."""
        self._phase = SweepPhase.WAITING
        self._wanted: _SetKnobs | None = None
        self._message = self._ended = ""
        self._trouble: LunscopeError | None = None
        self._result: Any = None
        self._after: Callable[[bool], None] = _nothing_follows
        self._is_followed = False
        self._thread = threading.Thread(target=self._run, name="lunscope-sweep", daemon=True)

    @property
    def state(self) -> StudyState[Any, Any, Any]:
        """The study now."""
        runner = self.runner
        return StudyState(
            runner.shown_plan,
            runner.points,
            self.phase,
            runner.expected,
            runner.left_s,
            self._ended,
            self.wanted,
            runner.troubles,
            self.part,
        )

    # ------------------------------------------------------------------ what is shown

    @property
    def paused(self) -> bool:
        """Whether the runner is asked to pause."""
        return self.runner.is_paused

    @property
    def is_measuring(self) -> bool:
        """Whether a trial is being measured, or the next follows at once."""
        return self.runner.now is not None or not self.paused

    @property
    def wanted(self) -> object:
        """Point or rate whose knobs are set on end; None without one."""
        wanted = self._wanted
        return None if wanted is None else wanted.key

    @property
    def phase(self) -> SweepPhase:
        """Where it is."""
        is_paused = self._phase is SweepPhase.MEASURING and self.paused
        return SweepPhase.PAUSED if is_paused else self._phase

    @property
    def message(self) -> str:
        """What the last request led to, in one line."""
        return self._message

    @property
    def failure(self) -> LunscopeError | None:
        """Why the load could not begin, or the file of trials could not be written."""
        return self._trouble

    # ------------------------------------------------------------------ requests

    def begin(self, after: Callable[[bool], None] | None = None) -> None:
        """Prepare the load and measure; once.

        `after` goes on with what follows, in the thread that measured once the load is stopped; it takes whether
        all was measured.
        """
        if self._phase is SweepPhase.WAITING and not self._ended:
            if after is not None:
                self._after, self._is_followed = after, True
            self._phase = SweepPhase.PREPARING
            self.controller.hold(self._hold)
            self._thread.start()

    def refuse(self, reason: str) -> None:
        """End before the beginning: a confirmation was not given."""
        self._ended, self._phase = reason, SweepPhase.ENDED

    def toggle_pause(self) -> None:
        """Pause after the trial in hand, or go on."""
        if self._phase is not SweepPhase.MEASURING:
            return
        if self.paused:
            self.runner.resume()
            self._message = ""
        else:
            self.runner.pause()
            self._message = f"pauses after the {self.runner.IN_HAND} in hand; the load goes on"

    def skip(self) -> None:
        """Leave out the point that is being measured."""
        name = self.runner.now_name
        if self.runner.NO_SKIP and self._phase in RUNNING_PHASES:
            self._message = self.runner.NO_SKIP
        elif self._phase is SweepPhase.MEASURING and name:
            self._message = f"skipped {name}"
            self.runner.skip()

    def stop(self) -> None:
        """End the measurement; what was measured stays."""
        if self._phase is SweepPhase.PREPARING:
            BackgroundCall(self.controller.control.stop, "lunscope-sweep-stop")
        self.runner.stop()
        if self._phase in RUNNING_PHASES:
            self._message = "stopping: what was measured is kept"

    def use(self, point: object) -> str:
        """Set the live knobs to a point: at the end of the measurement while it goes on, else now, starting the load.

        Returns why it has no knobs; else nothing.
        """
        runner = self.runner
        if not runner.NO_KNOBS:
            wanted = _SetKnobs(runner.name_of(point), runner.knobs_of(point), point, runner.job_of(point))
            self._set_knobs(wanted)
        return runner.NO_KNOBS

    def _set_knobs(self, wanted: _SetKnobs) -> None:
        name = wanted.name
        with self._lock:
            if self._phase in RUNNING_PHASES:
                is_same = self._wanted is not None and self._wanted.key == wanted.key
                self._wanted = None if is_same else wanted
                kept = f"on end: {name}, and the load goes on with it"
                self._message = kept if self._wanted else f"{name} is not set on end: the load stops then"
                return
        controller = self.controller
        if controller.status.state in BUSY_STATES:
            self._message = f"wait: the load is {controller.status.state}"
            return
        is_running = controller.status.state is LoadState.RUNNING
        job, running = wanted.job, controller.status.job
        if job is not None and is_running and running is not None and replace(running, knobs=job.knobs) != job:
            self._message = f"{name} set: the load begins anew with it"
            begin = functools.partial(controller.control.begin_anew, job, wanted.knobs, lambda: False)
            self._in_background(begin, f"{name} set: the load began anew with it")
            return

        def turned(error: str) -> None:
            self._message = error or f"{name} set: the load runs with it"

        try:
            if not is_running:
                controller.take_job(job or self.study.plan.armed)
            controller.turn(wanted.knobs, turned)
        except LunscopeError as error:
            self._message = str(error)
            return
        if not is_running:
            self._message = f"{name} set: the load starts with it"
            self._in_background(controller.start, f"{name} set: the load was started with it")

    def close(self) -> None:
        """Begin to end, as the screens are left."""
        self._after = _nothing_follows
        self.runner.stop()

    def finish(self) -> Any:  # noqa: ANN401 (of its kind)
        """Return what was measured, once the screens are left; None if the load never began."""
        self.runner.stop()
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join(LAST_POINT_S)
        self._trials = None
        return self.result

    @property
    def result(self) -> Any:  # noqa: ANN401 (of its kind)
        """What was measured up to now; None if the load never began."""
        if self._result is None and self._phase is SweepPhase.MEASURING:
            return self.runner.result_so_far("stopped")
        return self._result

    # ------------------------------------------------------------------ the thread

    def _run(self) -> None:
        try:
            self._prepare()
            self._phase = SweepPhase.MEASURING
            self._result = self.runner.run()
            self._end(self.runner.how_ended if self._trouble is None else str(self._trouble))
        except StoppedError:
            self._end("stopped")
        except LunscopeError as error:
            self._trouble = error
            self._end(str(error))
        except Exception as error:  # a thread has nobody who catches it
            self._trouble = LunscopeError(f"{type(error).__name__}: {error}")
            self._end(str(self._trouble))

    def _prepare(self) -> None:
        control = self.controller.control
        if self.controller.status.state in LIVE_STATES:
            control.stop()
        self.controller.take_held(self.study.plan.armed)
        self.controller.arm_held()
        control.turn(self.study.plan.first)
        control.start()

    def _end(self, ended: str) -> None:
        """Stop the load, or leave it running with the knobs that were asked for meanwhile."""
        is_complete = self._result is not None and self._result.is_complete and self._trouble is None
        with self._lock:
            began = self._phase is SweepPhase.MEASURING
            self._ended, wanted = ended, self._wanted
            self._wanted, self._phase = None, SweepPhase.ENDED
        goes_on = is_complete and self._is_followed
        if wanted is not None and self.controller.status.state is LoadState.RUNNING and not goes_on:
            self._message = ""
            self._set_knobs(wanted)
            return
        self._message = ""
        if began:
            self._message = "the load stops"
            self._stop_load()
        self._after(is_complete)

    def _stop_load(self) -> None:
        try:
            self.controller.control.stop()
        except LunscopeError as error:
            self._message = str(error)
        else:
            self._message = "the load is stopped"

    def _in_background(self, call: Callable[[], object], done: str) -> None:
        def work() -> None:
            try:
                call()
            except LunscopeError as error:
                self._message = str(error)
            else:
                self._message = done

        BackgroundCall(work, "lunscope-sweep-load")

    def _hold(self) -> str:
        """Why the knobs may not be turned by hand now; empty if they may."""
        what = self.runner.WHAT
        if self._phase in RUNNING_PHASES and self.is_measuring:
            return f"a {what} is measuring with this load: stop the {what} first"
        return ""

    def _keep(self, curve: int, trial: object) -> None:
        """Write a trial to the file, unless the screens are left: it is closed then."""
        trials = self._trials
        if trials is None:
            return
        try:
            trials.note_host(self.controller.watch.host() or {})
            trials.append(curve, trial)
        except LunscopeError as error:
            self._trouble = error
            self.runner.stop()


def _nothing_follows(_is_complete: bool) -> None:
    """End here."""
