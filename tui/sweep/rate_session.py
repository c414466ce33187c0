"""A live search for the highest rate behind the screen."""

from __future__ import annotations

from engine.rate_search.plan import RatePlan, RatePoint
from engine.rate_search.runner import RateResult, RateRunner
from engine.rate_search.trial import RateTrial
from engine.study.trial_file import TrialFile
from tui.load.load_controller import LoadController
from tui.sweep.measuring import MeasuringSession, SetKnobs
from tui.sweep.rate_state import RateState
from tui.sweep.state import RUNNING_PHASES


class RateSession(MeasuringSession[RateResult, RateTrial]):
    """Owns a search from its first trial to its answer."""

    WHAT = "search for a rate"
    IN_HAND = "trial"

    runner: RateRunner

    def __init__(
        self, plan: RatePlan, controller: LoadController, trials: TrialFile[RateTrial] | None = None, *, part: str = ""
    ) -> None:
        super().__init__(controller, plan.armed, plan.first, trials, part=part)
        self.plan = plan
        done = () if trials is None else tuple(trials.done)
        note, watch = controller.control.note_load, controller.watch
        self.runner = RateRunner(plan, controller.control, self._keep, done, note=note, watch=watch)

    @property
    def least_read_pct(self) -> float:
        """The lowest share of reads of all combinations."""
        return min(knobs.read_pct for _, knobs in self.plan.curves)

    @property
    def state(self) -> RateState:
        """The search now."""
        runner, is_over = self.runner, self._phase not in RUNNING_PHASES
        wanted = self.wanted if isinstance(self.wanted, RatePoint) else None
        return RateState(
            self.plan,
            runner.trials,
            self.phase,
            None if is_over else runner.now,
            runner.left_s,
            self._ended,
            wanted,
            runner.troubles,
            self.part,
        )

    def skip(self) -> None:
        """Say that each trial of a search decides which comes next."""
        if self._phase in RUNNING_PHASES:
            self._message = "a search has no trials to skip: each decides which rate comes next"

    def use(self, point: RatePoint) -> None:
        """Set the live rate: at the end of the search while it goes on, else now, starting the load."""
        self.set_knobs(SetKnobs(self.plan.point_name(point), self.plan.knobs_at(point.curve, point.rate), point))
