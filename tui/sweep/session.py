"""A live sweep behind the screen."""

from __future__ import annotations

from engine.study.trial_file import TrialFile
from engine.sweep.plan import SweepPlan
from engine.sweep.points import Point
from engine.sweep.runner import SweepResult, SweepRunner
from engine.sweep.trial import Trial
from tui.load.load_controller import LoadController
from tui.sweep.measuring import MeasuringSession, Wanted
from tui.sweep.state import SweepPhase, SweepState


class SweepSession(MeasuringSession[SweepResult, Trial]):
    """Owns a sweep from its first point to its answer."""

    def __init__(
        self, plan: SweepPlan, controller: LoadController, trials: TrialFile[Trial] | None = None, *, part: str = ""
    ) -> None:
        super().__init__(controller, plan.armed, plan.first, trials, part=part)
        self.plan = plan
        done = () if trials is None else tuple(trials.done)
        note, watch = controller.control.note_load, controller.watch
        self._runner = SweepRunner(plan, controller.control, self._keep, done, note=note, watch=watch)

    @property
    def runner(self) -> SweepRunner:
        """What measures."""
        return self._runner

    @property
    def is_measuring(self) -> bool:
        """Whether a point is being measured, or the next follows at once."""
        return self._runner.points.measuring is not None or not self.paused

    @property
    def least_read_pct(self) -> float:
        """The lowest share of reads of all points."""
        return min(curve.knobs.read_pct for curve in self.plan.curves)

    @property
    def state(self) -> SweepState:
        """The sweep now."""
        progress, phase = self._runner.progress, self._phase
        if phase is SweepPhase.MEASURING and progress.is_paused:
            phase = SweepPhase.PAUSED
        wanted = self.wanted if isinstance(self.wanted, Point) else None
        return SweepState(
            self.plan,
            self._runner.points,
            phase,
            progress.expected,
            progress.left_s,
            self._ended,
            wanted,
            self._runner.troubles,
            self.part,
        )

    def skip(self) -> None:
        """Leave out the point that is being measured."""
        at = self._runner.points.measuring
        if self._phase is SweepPhase.MEASURING and at is not None:
            self._message = f"skipped {self.plan.point_name(at)}"
            self._runner.skip()

    def use(self, point: Point) -> None:
        """Set the live knobs to a point: at the end of the sweep while it goes on, else now, starting the load."""
        knobs = self.plan.knobs_at(self.plan.curves[point.curve], point.load)
        self.set_knobs(Wanted(self.plan.point_name(point), knobs, point))
