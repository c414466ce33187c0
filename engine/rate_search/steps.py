"""Open loops at shares of the throughput of closed ones: both curves on the same axes, without a search."""

from __future__ import annotations

from collections.abc import Sequence

from engine.errors import UsageError
from engine.job.knobs import Knobs
from engine.job.spec import Arrival, JobSpec
from engine.job.validate import validate
from engine.rate_search.grid import rounded
from engine.rate_search.plan import RatePlan, RateSteps
from engine.rate_search.search import RateSearch
from engine.replacing import replace
from engine.sweep.runner import SweepResult
from engine.sweep.text import summaries

SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Shares of the highest throughput of the closed loop; the last is expected to build a backlog."""


def steps_after(closed: SweepResult, job: JobSpec, curves: Sequence[tuple[str, Knobs]]) -> RatePlan:
    """Plan the rates by what the closed loops reached; `curves` are their combinations, in their order.

    Raises:
        UsageError: a job that cannot have arrivals, or closed loops that did nothing.
    """
    arrival = Arrival.POISSON if job.arrival is Arrival.CLOSED else job.arrival
    highest = [max((point.iops for point in summaries(curve.trials)), default=0.0) for curve in closed.curves]
    if not all(highest):
        raise UsageError("--open-loop: a closed loop did no I/O, so that there is no rate to begin with")
    rates = tuple(tuple(rounded(share * each) for share in SHARES) for each in highest)
    plan = RatePlan(replace(job, arrival=arrival), RateSearch(()), tuple(curves), steps=RateSteps(rates))
    for curve, of_curve in enumerate(rates):
        validate(replace(plan.job, knobs=plan.knobs_at(curve, of_curve[0])))
    return plan
