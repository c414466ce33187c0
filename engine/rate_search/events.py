"""A search for rates as events of a session."""

from __future__ import annotations

import functools
import json
from typing import Annotated

from msgspec import Meta, Struct

from engine.errors import UsageError
from engine.job.spec import Arrival, JobSpec
from engine.rate_search.goal import RateGoal
from engine.rate_search.plan import RatePlan, RateRange
from engine.rate_search.search import RateSearch
from engine.rate_search.trial import RateTrial
from engine.replacing import replace
from engine.study.decoded import decoded, encoded
from engine.study.events import BEGIN, END, Data, StudyEvents, StudyReading, from_json
from engine.sweep.limit import Limit

_KEY = "rate_search"
_TRIAL = "trial"
_LOW, _HIGH = "low", "high"
_Rate = Annotated[float, Meta(gt=0, lt=1e12)]
_Depth = Annotated[int, Meta(ge=1, le=1_000_000)]
_SEARCH = "search for the highest rate"


class RecordedRates(Struct, frozen=True):
    """A recorded search at one moment."""

    plan: RatePlan
    """Limits, goal and combinations over the default job; the job is in the events of the load."""
    trials: tuple[tuple[RateTrial, ...], ...]
    """Trials by combination."""
    ended: str
    """"complete", "stopped", or why the load ended; empty while it goes on."""


def begin_event(plan: RatePlan) -> tuple[str, Data]:
    """Text and data of the start of a search."""
    limits, goal = [limit.text for limit in plan.limits], plan.search.goal
    data: Data = {
        _KEY: BEGIN,
        "limits": "\n".join(limits),
        "curves": json.dumps([[name, knobs.queue_depth] for name, knobs in plan.curves]),
        "arrival": plan.job.arrival.value,
        "goal": json.dumps(encoded(goal)),
        _LOW: plan.search.low,
        _HIGH: plan.search.high,
    }
    return f"{_SEARCH} with {', '.join(limits)}" if limits else plan.words, data


def trial_event(plan: RatePlan, curve: int, trial: RateTrial) -> tuple[str, Data]:
    """Text and data of a trial."""
    verdicts = "".join(f", {limit.text} {'kept' if trial.keeps(limit) else 'exceeded'}" for limit in plan.limits)
    # The recording itself has what its devices did.
    kept = json.dumps(encoded(replace(trial, devices=None)), allow_nan=False)
    data: Data = {_KEY: _TRIAL, "curve": curve, "trial": kept}
    return f"{plan.curves[curve][0]} rate {trial.rate:,.0f}: {trial.iops:,.0f} IOPS{verdicts}".strip(), data


def end_event(plan: RatePlan, ended: str) -> tuple[str, Data]:
    """Text and data of the end."""
    return f"{_SEARCH if plan.limits else 'open loop'}: {ended}", {_KEY: END, "how": ended}


def _plan(data: Data) -> tuple[RatePlan, int] | None:
    """Read the plan; earlier recordings lack all but the limits."""
    job = JobSpec(arrival=Arrival.POISSON)
    goal = from_json(RateGoal, str(data.get("goal", "{}")))
    curves = from_json(list[tuple[str, _Depth]], str(data.get("curves", '[["", 128]]')))
    try:
        limits = tuple(Limit.parse(part) for part in str(data.get("limits", "")).replace(", ", "\n").splitlines())
        job = replace(job, arrival=Arrival(str(data.get("arrival", job.arrival.value))))
    except (UsageError, ValueError):
        return None
    if not curves or goal is None:
        return None
    low, high = (decoded(_Rate, data.get(name)) for name in (_LOW, _HIGH))
    knobs = tuple((name, replace(job.knobs, queue_depth=depth)) for name, depth in curves)
    return RatePlan(job, RateSearch(limits, goal, low, high), knobs, RateRange(low, high)), len(knobs)


@functools.lru_cache(maxsize=8192)
def _trial(text: str) -> RateTrial | None:
    return from_json(RateTrial, text)


def _found(reading: StudyReading[RatePlan, RateTrial]) -> RecordedRates:
    return RecordedRates(reading.plan, tuple(map(tuple, reading.trials)), reading.ended or "")


RATE_EVENTS = StudyEvents(_KEY, _plan, _trial, _found)
