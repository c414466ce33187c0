"""A live search for the highest rate behind the screen."""

from __future__ import annotations

from engine.rate_search.plan import RatePlan
from engine.rate_search.runner import RateResult, RateRunner
from engine.rate_search.trial import RateTrial
from engine.study.trial_file import TrialFile
from tui.load.load_controller import LoadController
from tui.sweep.measuring import MeasuringSession, Wanted
from tui.sweep.rate_state import RatePoint, RateState
from tui.sweep.state import RUNNING_PHASES, SweepPhase


class RateSession(MeasuringSession[RateResult, RateTrial]):
    """Owns a search from its first trial to its answer."""

    WHAT = "search for a rate"
    IN_HAND = "trial"

    def __init__(
        self, plan: RatePlan, controller: LoadController, trials: TrialFile[RateTrial] | None = None, *, part: str = ""
    ) -> None:
        super().__init__(controller, plan.armed, plan.first, trials, part=part)
        self.plan = plan
        done = () if trials is None else tuple(trials.done)
        note, watch = controller.control.note_load, controller.watch
        self._runner = RateRunner(plan, controller.control, self._keep, done, note=note, watch=watch)

    @property
    def runner(self) -> RateRunner:
        """What measures."""
        return self._runner

    @property
    def is_measuring(self) -> bool:
        """Whether a trial is being measured, or the next follows at once."""
        return self._runner.progress.rate > 0 or not self.paused

    @property
    def least_read_pct(self) -> float:
        """The lowest share of reads of all combinations."""
        return min(knobs.read_pct for _, knobs in self.plan.curves)

    @property
    def state(self) -> RateState:
        """The search now."""
        progress, phase = self._runner.progress, self._phase
        if phase is SweepPhase.MEASURING and progress.is_paused:
            phase = SweepPhase.PAUSED
        wanted = self.wanted if isinstance(self.wanted, RatePoint) else None
        now = RatePoint(progress.curve, progress.rate) if progress.rate and phase in RUNNING_PHASES else None
        return RateState(
            self.plan,
            self._runner.trials,
            phase,
            now,
            progress.left_s,
            self._ended,
            wanted,
            self._runner.troubles,
            self.part,
        )

    def skip(self) -> None:
        """Say that each trial of a search decides which comes next."""
        if self._phase in RUNNING_PHASES:
            self._message = "a search has no trials to skip: each decides which rate comes next"

    def use(self, point: RatePoint) -> None:
        """Set the live rate: at the end of the search while it goes on, else now, starting the load."""
        self.set_knobs(Wanted(point.name(self.plan), self.plan.knobs_at(point.curve, point.rate), point))
