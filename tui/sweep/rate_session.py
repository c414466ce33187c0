"""A live search for the highest rate behind the screen."""

from __future__ import annotations

from engine.rate_search.plan import RatePlan, RatePoint
from engine.rate_search.runner import RateResult, RateRunner
from engine.rate_search.trial import RateTrial
from tui.sweep.measuring import MeasuringSession, SetKnobs
from tui.sweep.rate_state import RateState
from tui.sweep.state import RUNNING_PHASES


class RateSession(MeasuringSession[RateState, RateResult, RateTrial]):
    """Owns a search from its first trial to its answer."""

    WHAT = "search for a rate"
    IN_HAND = "trial"

    runner: RateRunner

    @property
    def plan(self) -> RatePlan:
        """What is searched."""
        return self.runner.plan

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
