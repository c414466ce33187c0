"""Searches for rates that stand still: made of a device by law, at any moment, without a load."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from collectors.model import Sample
from engine.job.knobs import Knobs
from engine.job.spec import Arrival, JobSpec, Permissions, TargetSpec
from engine.rate_search.events import begin_event, end_event, trial_event
from engine.rate_search.goal import allowed_share
from engine.rate_search.plan import RatePlan, RatePoint, RateSteps, make_rate_plan
from engine.rate_search.runner import RateRunner
from engine.rate_search.search import RateSearch, WantedTrial
from engine.rate_search.trial import RateTrial
from engine.replacing import replace
from engine.running.control import LoadControl
from engine.study.order import Study
from engine.study.points import StudyPoints
from engine.sweep.limit import Limit
from tests.app.still_sessions import RemembersRequests, with_events
from tui.load.load_controller import LoadController
from tui.screens.sweep.rate_rows import RateState
from tui.sweep.session import StudySession
from tui.sweep.state import StudyState, SweepPhase

LIMITS = ("p99<=5ms", "mean<=1ms", "p50<=0.1us")
MAXIMUM = 20_000.0
FACTORS = {"mean": 1.0, "p50": 0.8, "p90": 2.0, "p99": 4.0, "p99.9": 7.0, "max": 9.0}
SERVICE_NS = 250_000.0


def searched_plan(*limits: str, curves: Sequence[tuple[str, Knobs]] = ()) -> RatePlan:
    job = JobSpec(targets=(TargetSpec("/nonexistent/diska"),), knobs=Knobs(queue_depth=128))
    return make_rate_plan(job, tuple(map(Limit.parse, limits or LIMITS)), curves=curves)


def step_plan() -> RatePlan:
    """Rates without limits, up to one that the device does not carry."""
    job = JobSpec(targets=(TargetSpec("/nonexistent/diska"),), arrival=Arrival.POISSON)
    rates = tuple(MAXIMUM * share for share in (0.3, 0.6, 0.9, 1.1))
    return RatePlan(job, RateSearch(()), (("", Knobs(queue_depth=128)),), steps=RateSteps((rates,)))


def trial_of(plan: RatePlan, wanted: WantedTrial, start_s: float) -> RateTrial:
    """A trial of a device whose latency rises as 1 / (1 - utilisation)."""
    iops = min(wanted.rate, MAXIMUM)
    mean_ns = SERVICE_NS / max(1 - iops / MAXIMUM, 0.002)
    latencies = {name: factor * mean_ns for name, factor in FACTORS.items()}
    keeps = {limit.text: latencies[limit.metric] <= limit.limit_ns for limit in plan.limits}
    return RateTrial(
        rate=wanted.rate,
        duration_s=wanted.duration_s,
        iops=iops,
        ios=round(iops * wanted.duration_s),
        latencies_ns=latencies,
        excess={
            limit.text: allowed_share(limit) / 2 if keeps[limit.text] else min(3 * allowed_share(limit) + 0.01, 1.0)
            for limit in plan.limits
        },
        is_sustained=wanted.rate <= MAXIMUM,
        start_s=start_s,
        stage=wanted.stage.value,
    )


def searched_trials(plan: RatePlan, count: int) -> tuple[tuple[RateTrial, ...], ...]:
    """The first trials of a search, or all of them."""
    trials: list[list[RateTrial]] = [[] for _ in plan.curves]
    left, start_s = count, 0.0
    for curve, of_curve in enumerate(trials):
        while left and (wanted := plan.next_trial(curve, of_curve)) is not None:
            of_curve.append(trial_of(plan, wanted, start_s))
            start_s += wanted.duration_s
            left -= 1
    return tuple(map(tuple, trials))


class StillRates(RemembersRequests, StudySession):
    """A session that measures nothing: it shows what it is given, and remembers what it is asked."""

    def __init__(self, control: LoadControl, count: int = 20, plan: RatePlan | None = None, **changes: Any) -> None:
        plan = plan or searched_plan()
        super().__init__(Study(plan, RateRunner), LoadController(control, plan.armed, Permissions()))
        trials = searched_trials(plan, count)
        wanted = plan.next_trial(0, trials[0])
        now = changes.pop("now", None if wanted is None else RatePoint(0, wanted.rate))
        points = StudyPoints(trials, (), now)
        self.shown = replace(StudyState(plan, points, SweepPhase.MEASURING, left_s=47.0), **changes)
        self.asked: list[object] = []

    @property
    def state(self) -> RateState:
        return self.shown


def with_search(samples: Sequence[Sample], count: int, first: int = 5, plan: RatePlan | None = None) -> list[Sample]:
    """The samples with a recorded search: a trial at each sample from `first` on, then its end."""
    plan = plan or searched_plan()
    happened = [begin_event(plan)]
    happened += [trial_event(plan, 0, trial) for trial in searched_trials(plan, count)[0]]
    happened += [end_event(plan, "complete")]
    return with_events(samples, happened, first)
