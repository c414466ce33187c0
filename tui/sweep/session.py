"""A live sweep behind the screen: it prepares the load, measures in a thread of its own, and sets knobs on request."""

from __future__ import annotations

import threading
from collections.abc import Callable

from collectors.advice.point_watch import DeviceWatch
from engine.background_call import BackgroundCall
from engine.errors import LunscopeError, StoppedError
from engine.running.status import LoadState
from engine.sweep.plan import SweepPlan
from engine.sweep.points import Point
from engine.sweep.runner import SweepResult, SweepRunner
from engine.sweep.trial import Trial
from engine.sweep.trial_file import TrialFile
from tui.load.load_controller import BUSY_STATES, LoadController
from tui.sweep.state import RUNNING_PHASES, SweepPhase, SweepState

LAST_POINT_S = 2.0
"""How long a measurement may take to end when the screens are left."""


class SweepSession:
    """Owns a sweep from its first point to its answer; no member blocks but `finish`.

    While it measures, the knobs of the load are its own: `LoadController` refuses to turn them.
    """

    def __init__(
        self,
        plan: SweepPlan,
        controller: LoadController,
        trials: TrialFile | None = None,
        watch: DeviceWatch | None = None,
    ) -> None:
        self.plan, self.controller, self.watch = plan, controller, watch
        self._trials = trials
        done = () if trials is None else tuple(trials.done)
        note = controller.control.note_load
        self._runner = SweepRunner(plan, controller.control, self._keep, done, note=note, watch=watch)
        self._lock = threading.Lock()
        """Of the point that is wanted, and of the end that takes it."""
        self._phase = SweepPhase.WAITING
        self._wanted: Point | None = None
        self._message = self._ended = ""
        self._trouble: LunscopeError | None = None
        self._result: SweepResult | None = None
        self._thread = threading.Thread(target=self._run, name="lunscope-sweep", daemon=True)
        controller.hold(self._hold)

    # ------------------------------------------------------------------ what is shown

    @property
    def state(self) -> SweepState:
        """The sweep now."""
        progress, phase = self._runner.progress, self._phase
        if phase is SweepPhase.MEASURING and progress.is_paused:
            phase = SweepPhase.PAUSED
        notes = self._runner.troubles
        return SweepState(
            self.plan, self._runner.points, phase, progress.expected, progress.left_s, self._ended, self._wanted, notes
        )

    @property
    def message(self) -> str:
        """What the last request led to, in one line."""
        return self._message

    @property
    def failure(self) -> LunscopeError | None:
        """Why the load could not begin, or the file of trials could not be written."""
        return self._trouble

    # ------------------------------------------------------------------ requests

    def begin(self) -> None:
        """Prepare the load and measure; once."""
        if self._phase is SweepPhase.WAITING and not self._ended:
            self._phase = SweepPhase.PREPARING
            self._thread.start()

    def refuse(self, reason: str) -> None:
        """End before the beginning: a confirmation was not given."""
        self._ended, self._phase = reason, SweepPhase.ENDED

    def toggle_pause(self) -> None:
        """Pause after the point in hand, or go on."""
        if self._phase is not SweepPhase.MEASURING:
            return
        if self._runner.progress.is_paused:
            self._runner.resume()
            self._message = ""
        else:
            self._runner.pause()
            self._message = "pauses after the point in hand; the load goes on"

    def skip(self) -> None:
        """Leave out the point that is being measured."""
        at = self._runner.points.measuring
        if self._phase is SweepPhase.MEASURING and at is not None:
            self._message = f"skipped {self.plan.point_name(at)}"
            self._runner.skip()

    def stop(self) -> None:
        """End the sweep; what was measured stays."""
        if self._phase is SweepPhase.PREPARING:
            BackgroundCall(self.controller.control.stop, "lunscope-sweep-stop")
        self._runner.stop()
        if self._phase in RUNNING_PHASES:
            self._message = "stopping: what was measured is kept"

    def use(self, point: Point) -> None:
        """Set the live knobs to a point: at the end of the sweep while it goes on, else now, starting the load."""
        name = self.plan.point_name(point)
        with self._lock:
            if self._phase in RUNNING_PHASES:
                self._wanted = None if self._wanted == point else point
                kept = f"on end: {name}, and the load goes on with it"
                self._message = kept if self._wanted else f"{name} is not set on end: the load stops then"
                return
        knobs, controller = self.plan.knobs_at(self.plan.curves[point.curve], point.load), self.controller
        if controller.status.state in BUSY_STATES:
            self._message = f"wait: the load is {controller.status.state}"
            return
        is_running = controller.status.state is LoadState.RUNNING

        def turned(error: str) -> None:
            self._message = error or f"{name} set: the load runs with it"

        try:
            controller.turn(knobs, turned)
        except LunscopeError as error:
            self._message = str(error)
            return
        if not is_running:
            self._message = f"{name} set: the load starts with it"
            self._in_background(controller.start, f"{name} set: the load was started with it")

    def close(self) -> None:
        """Begin to end, as the screens are left."""
        self._runner.stop()

    def finish(self) -> SweepResult | None:
        """Return what was measured, once the screens are left; None if the load never began."""
        self._runner.stop()
        if self._thread.ident is not None:
            self._thread.join(LAST_POINT_S)
        self._trials = None
        if self._result is None and self._phase is SweepPhase.MEASURING:
            return self._runner.result_so_far("stopped")
        return self._result

    # ------------------------------------------------------------------ the thread

    def _run(self) -> None:
        try:
            self._prepare()
            self._phase = SweepPhase.MEASURING
            self._result = result = self._runner.run()
            self._end(result.ended if self._trouble is None else str(self._trouble))
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
        self.controller.arm_held()
        control.turn(self.plan.first)
        control.start()

    def _end(self, ended: str) -> None:
        """Stop the load, or leave it running with the knobs that were asked for meanwhile."""
        with self._lock:
            began = self._phase is SweepPhase.MEASURING
            self._ended, wanted = ended, self._wanted
            self._wanted, self._phase = None, SweepPhase.ENDED
        if wanted is not None and self.controller.status.state is LoadState.RUNNING:
            self._message = ""
            self.use(wanted)
            return
        if not began:
            self._message = ""
            return
        self._message = "the load stops"
        self._in_background(self.controller.control.stop, "the load is stopped")

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
        measuring = self._runner.points.measuring is not None or not self._runner.progress.is_paused
        if self._phase in RUNNING_PHASES and measuring:
            return "a sweep is measuring with this load: stop the sweep first"
        return ""

    def _keep(self, curve: int, trial: Trial) -> None:
        trials = self._trials
        if trials is None:
            return
        try:
            if self.watch is not None:
                trials.note_host(self.watch.host() or {})
            trials.append(curve, trial)
        except LunscopeError as error:
            self._trouble = error
            self._runner.stop()
