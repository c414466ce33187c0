"""A search for rates as events of a session: written as it goes on, read back up to any moment of a recording."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TypeAlias

from msgspec import Struct

from engine.errors import UsageError
from engine.events import Event
from engine.job.spec import Arrival, JobSpec
from engine.rate_search.goal import RateGoal
from engine.rate_search.plan import RatePlan, RateRange
from engine.rate_search.search import RateSearch
from engine.rate_search.trial import RateTrial
from engine.rate_search.trial_file import read_rate_trial
from engine.replacing import replace
from engine.strict_json import JsonError, load_json
from engine.sweep.limit import Limit

Data: TypeAlias = Mapping[str, str | float | None]
_KEY = "rate_search"
_BEGIN, _TRIAL, _END = "begin", "trial", "end"
_LOW, _HIGH = "low", "high"
_DEEPEST = 1_000_000
_SEARCH = "search for the highest rate"


class RecordedRates(Struct, frozen=True):
    """A recorded search at one moment."""

    plan: RatePlan
    """Its limits, goal and combinations over the default job; the job is in the events of the load."""
    trials: tuple[tuple[RateTrial, ...], ...]
    """By combination."""
    ended: str
    """"complete", "stopped", or why the load ended; empty while it goes on."""


def begin_event(plan: RatePlan) -> tuple[str, Data]:
    """Text and data of the start of a search."""
    limits, goal = [limit.text for limit in plan.limits], plan.search.goal
    data: Data = {
        _KEY: _BEGIN,
        "limits": "\n".join(limits),
        "curves": json.dumps([[name, knobs.queue_depth] for name, knobs in plan.curves]),
        "arrival": plan.job.arrival.value,
        "goal": json.dumps(asdict(goal)),
        _LOW: plan.search.low,
        _HIGH: plan.search.high,
    }
    return f"{_SEARCH} with {', '.join(limits)}" if limits else plan.words, data


def trial_event(plan: RatePlan, curve: int, trial: RateTrial) -> tuple[str, Data]:
    """Text and data of a trial."""
    verdicts = "".join(f", {limit.text} {'kept' if trial.keeps(limit) else 'exceeded'}" for limit in plan.limits)
    # The recording itself has what its devices did.
    kept = json.dumps(asdict(replace(trial, devices=None)), allow_nan=False)
    data: Data = {_KEY: _TRIAL, "curve": curve, "trial": kept}
    return f"{plan.curves[curve][0]} rate {trial.rate:,.0f}: {trial.iops:,.0f} IOPS{verdicts}".strip(), data


def end_event(plan: RatePlan, ended: str) -> tuple[str, Data]:
    """Text and data of the end."""
    return f"{_SEARCH if plan.limits else 'open loop'}: {ended}", {_KEY: _END, "how": ended}


def is_rates_begin(event: Event) -> bool:
    """Whether a search begins with this event."""
    return event.data.get(_KEY) == _BEGIN


def recorded_rates(events: Iterable[Event]) -> RecordedRates | None:
    """Read the last search that began among these events; None without one, or one that this version cannot read."""
    plan: RatePlan | None = None
    trials: list[list[RateTrial]] = []
    ended = ""
    for event in events:
        match event.data.get(_KEY):
            case "begin":
                plan, ended = _plan(event.data), ""
                trials = [] if plan is None else [[] for _ in plan.curves]
            case "trial":
                curve, trial = event.data.get("curve"), _trial(str(event.data.get("trial")))
                if isinstance(curve, int) and 0 <= curve < len(trials) and trial is not None:
                    trials[curve].append(trial)
            case "end":
                ended = str(event.data.get("how", ""))
    return None if plan is None else RecordedRates(plan, tuple(map(tuple, trials)), ended)


@functools.lru_cache(maxsize=8192)
def _trial(text: str) -> RateTrial | None:
    document = _json(text)
    return read_rate_trial(document) if isinstance(document, dict) else None


def _plan(data: Data) -> RatePlan | None:
    """Read the plan; earlier recordings lack all but the limits."""
    job = JobSpec(arrival=Arrival.POISSON)
    try:
        limits = tuple(Limit.parse(part) for part in str(data.get("limits", "")).replace(", ", "\n").splitlines())
        job = replace(job, arrival=Arrival(str(data.get("arrival", job.arrival.value))))
        goal = _goal(_json(str(data.get("goal", "{}"))))
        curves = _curves(_json(str(data.get("curves", '[["", 128]]'))))
    except (UsageError, ValueError, TypeError):
        return None
    low, high = (_rate(data.get(name)) for name in (_LOW, _HIGH))
    if not curves:
        return None
    knobs = tuple((name, replace(job.knobs, queue_depth=depth)) for name, depth in curves)
    return RatePlan(job, RateSearch(limits, goal, low, high), knobs, RateRange(low, high))


def _rate(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and 0 < value < 1e12 else None


def _goal(document: object) -> RateGoal:
    if not isinstance(document, dict):
        raise TypeError("not a goal")
    known = {name: float(value) for name, value in document.items() if value is not None}
    goal = RateGoal(**known)
    times = (goal.first_trial_s, goal.trial_s, goal.duration_sum_s or 1.0)
    if not 0.001 <= goal.width <= 1 or not 0 <= goal.exceed_ratio < 1 or not all(0 < each <= 3600 for each in times):
        raise ValueError("not a goal")
    return goal


def _curves(document: object) -> list[tuple[str, int]]:
    if not isinstance(document, list) or not document:
        raise TypeError("no combinations")
    curves = [(str(name), int(depth)) for name, depth in document]
    if not all(0 < depth <= _DEEPEST for _, depth in curves):
        raise ValueError("no depth")
    return curves


def _json(text: str) -> object:
    try:
        return load_json(text)
    except JsonError:
        return None
