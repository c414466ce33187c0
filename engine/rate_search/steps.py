"""Open loops at shares of the throughput of closed ones: both curves on the same axes, without a search."""

from __future__ import annotations

from collections.abc import Sequence

from engine.errors import UsageError
from engine.job.knobs import Knobs
from engine.job.spec import Arrival, JobSpec
from engine.job.validate import validate
from engine.rate_search.grid import rounded
from engine.rate_search.known import KnownTrials
from engine.rate_search.plan import RatePlan
from engine.rate_search.search import RateSearch, WantedTrial
from engine.rate_search.trial import RateStage, RateTrial
from engine.replacing import replace
from engine.sweep.runner import SweepResult
from engine.sweep.text import summaries

SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Shares of the highest throughput of the closed loop; the last is expected to build a backlog."""
_LEAST_S = 2.0
_MOST_S = 20.0
_IOS = 2000
"""I/Os of a point: 20 of them are beyond p99."""


class StepPlan(RatePlan, frozen=True):
    """One trial at each of some rates, for each combination."""

    rates: tuple[tuple[float, ...], ...] = ()
    """Rates of each combination, ascending."""

    def next_trial(
        self, curve: int, trials: Sequence[RateTrial], _known: KnownTrials | None = None
    ) -> WantedTrial | None:
        """Take the rates in their order."""
        done = {trial.rate for trial in trials}
        rate = next((rate for rate in self.rates[curve] if rate not in done), None)
        return None if rate is None else WantedTrial(rate, _trial_s(rate), RateStage.STEP)

    @property
    def first(self) -> Knobs:
        """Knobs of the first trial."""
        return self.knobs_at(0, self.rates[0][0])

    @property
    def known_by(self) -> tuple[object, ...]:
        """Whatever makes trials of other steps useless for these."""
        return self.job, self.rates, self.curves

    @property
    def expected_s(self) -> float:
        """Time on any device: each trial has a length of its own."""
        return sum(_trial_s(rate) + 0.5 for rates in self.rates for rate in rates)

    @property
    def words(self) -> str:
        """How much it is, in one line."""
        count = sum(map(len, self.rates))
        return f"open loop at {count} rates: {self.job.arrival} arrivals, about {self.expected_s:.0f} s"


def _trial_s(rate: float) -> float:
    return min(max(_IOS / rate, _LEAST_S), _MOST_S)


def steps_after(closed: SweepResult, job: JobSpec, curves: Sequence[tuple[str, Knobs]]) -> StepPlan:
    """Plan the rates by what the closed loops reached; `curves` are their combinations, in their order.

    Raises:
        UsageError: a job that cannot have arrivals, or closed loops that did nothing.
    """
    arrival = Arrival.POISSON if job.arrival is Arrival.CLOSED else job.arrival
    highest = [max((point.iops for point in summaries(curve.trials)), default=0.0) for curve in closed.curves]
    if not all(highest):
        raise UsageError("--open-loop: a closed loop did no I/O, so that there is no rate to begin with")
    rates = tuple(tuple(rounded(share * each) for share in SHARES) for each in highest)
    plan = StepPlan(replace(job, arrival=arrival), RateSearch(()), tuple(curves), rates=rates)
    for curve, of_curve in enumerate(rates):
        validate(replace(plan.job, knobs=plan.knobs_at(curve, of_curve[0])))
    return plan
