"""A search for rates as events of a session."""

from __future__ import annotations

import json
from typing import Annotated

from msgspec import Meta, Struct

from engine.job.spec import Arrival, JobSpec
from engine.rate_search.goal import RateGoal
from engine.rate_search.plan import RatePlan, RateRange
from engine.rate_search.search import RateSearch
from engine.rate_search.trial import RATE_TRIALS, RateTrial
from engine.replacing import replace
from engine.study.decoded import encoded
from engine.study.events import Data, RecordedStudy, StudyEvents, from_json
from engine.sweep.limit import Limit

_Rate = Annotated[float, Meta(gt=0, lt=1e12)]
_Depth = Annotated[int, Meta(ge=1, le=1_000_000)]
_SEARCH = "search for the highest rate"


class RecordedRates(RecordedStudy[RatePlan, RateTrial], frozen=True):
    """A recorded search at one moment."""


class _RatesBegin(Struct, frozen=True):
    """Earlier recordings lack all but the limits."""

    limits: str = ""
    """A line each."""
    curves: str = '[["", 128]]'
    """Name and queue depth of each combination, as JSON."""
    arrival: Arrival = Arrival.POISSON
    goal: str = "{}"
    """As JSON."""
    low: _Rate | None = None
    high: _Rate | None = None


def begin_event(plan: RatePlan) -> tuple[str, Data]:
    """Text and data of the start of a search."""
    limits, search = [limit.text for limit in plan.limits], plan.search
    curves = json.dumps([[name, knobs.queue_depth] for name, knobs in plan.curves])
    goal = json.dumps(encoded(search.goal))
    begin = _RatesBegin("\n".join(limits), curves, plan.job.arrival, goal, search.low, search.high)
    return f"{_SEARCH} with {', '.join(limits)}" if limits else plan.words, RATE_EVENTS.begin_data(begin)


def trial_event(plan: RatePlan, curve: int, trial: RateTrial) -> tuple[str, Data]:
    """Text and data of a trial."""
    verdicts = "".join(f", {limit.text} {'kept' if trial.keeps(limit) else 'exceeded'}" for limit in plan.limits)
    text = f"{plan.curves[curve][0]} rate {trial.rate:,.0f}: {trial.iops:,.0f} IOPS{verdicts}".strip()
    return text, RATE_EVENTS.trial_data(curve, trial)


def end_event(plan: RatePlan, ended: str) -> tuple[str, Data]:
    """Text and data of the end."""
    return f"{_SEARCH if plan.limits else 'open loop'}: {ended}", RATE_EVENTS.end_data(ended)


def _plan(begin: _RatesBegin) -> tuple[RatePlan, int]:
    goal, curves = from_json(RateGoal, begin.goal), from_json(list[tuple[str, _Depth]], begin.curves)
    if not curves or goal is None:
        raise ValueError("no combinations, or no goal")
    limits = tuple(map(Limit.parse, begin.limits.replace(", ", "\n").splitlines()))
    job = JobSpec(arrival=begin.arrival)
    knobs = tuple((name, replace(job.knobs, queue_depth=depth)) for name, depth in curves)
    search = RateSearch(limits, goal, begin.low, begin.high)
    return RatePlan(job, search, knobs, RateRange(begin.low, begin.high)), len(knobs)


RATE_EVENTS = StudyEvents("rate_search", "trial", RATE_TRIALS, _RatesBegin, _plan, RecordedRates)
