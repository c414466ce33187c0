"""What a search for a rate is to reach: the terms of RFC 9971 (MLRsearch), and how they are typed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Annotated

from msgspec import Meta, Struct

from engine.errors import UsageError
from engine.job.sizes import parse_duration
from engine.replacing import replace
from engine.sweep.limit import Limit

_EXCEEDANCES = 10
"""I/Os beyond a percentile on which a rate within a limit rests at least."""
_ROUGH = (4, 6)
"""The same in the passes before the last."""
_IOS_OF_MEAN = 10
"""I/Os for each exceedance where a limit is about no percentile: 100 in the last pass."""
_TWICE = 2
"""Factor of the I/Os that are needed at least, for what is near a limit."""
_MOST_TRIAL_S = 10.0
_MOST_AT_RATE_S = 120.0
"""Most time at one rate, unless more is asked for: with too few I/Os in it the rate stays undecided."""
_LONGER = 1.25
"""Times the usual one that a rate has where I/Os and time do not agree, and at least"""
_LONGER_SUM = 2.0
"""times the time that is asked for."""
_DURATION_SUM_S = 21.0
"""Sum of durations, as FD.io CSIT has it."""
_LEAST_SUM_S = 7.0


def allowed_share(limit: Limit) -> float:
    """Share of the I/Os of a trial that may take longer than a limit (the goal loss ratio): 0.01 for p99."""
    return 1 - float(limit.metric[1:]) / 100 if limit.metric.startswith("p") else 0.0


class Phase(Struct, frozen=True):
    """One pass of the search; each narrows the bounds of the one before with more and longer trials."""

    trial_s: float
    """Trials at least as long count in full."""
    duration_sum_s: float
    steps: int
    """Distance of the bounds that is enough, in steps of the grid."""
    exceedances: int = _EXCEEDANCES
    """I/Os beyond a percentile that a class rests on at least, were the limit just kept."""

    def least_ios(self, limit: Limit) -> float:
        """I/Os at one rate without which a limit is not judged."""
        return self.exceedances / allowed_share(limit) if limit.percent else self.exceedances * _IOS_OF_MEAN

    def time_at(self, rate: float, limit: Limit) -> float:
        """Seconds after which a rate is decided: as many as its I/Os take, within bounds."""
        return max(self.duration_sum_s, min(_TWICE * self.least_ios(limit) / rate, _MOST_AT_RATE_S))

    def longest_at(self, rate: float, limit: Limit) -> float:
        """Seconds after which a rate is not measured any more."""
        return max(_LONGER * self.time_at(rate, limit), _LONGER_SUM * self.duration_sum_s)

    def trial_at(self, rate: float, limit: Limit) -> float:
        """Duration of a trial: long enough for the I/Os that are needed, within bounds."""
        return max(self.trial_s, min(self.least_ios(limit) / rate, _MOST_TRIAL_S))


def lowest_rate(limits: Sequence[Limit]) -> float:
    """Lowest rate that is decided in the longest time that is given to one."""
    most = max((Phase(0.0, 0.0, 1).least_ios(limit) for limit in limits), default=0.0)
    return _TWICE * most / _MOST_AT_RATE_S


_Seconds = Annotated[float, Meta(gt=0, le=3600)]


class RateGoal(Struct, frozen=True, forbid_unknown_fields=True):
    """When the bounds of a limit are good enough."""

    width: Annotated[float, Meta(ge=0.001, le=1)] = 0.05
    """Distance of the bounds, as a share of the lower one."""
    exceed_ratio: Annotated[float, Meta(ge=0, lt=1)] = 0.5
    """Share of the time at one rate in which the limit may be exceeded, if all its I/Os together keep it."""
    duration_sum_s: _Seconds | None = None
    """Time at one rate after which it is decided in any case; None: 21 s for one limit, less for each of several."""
    trial_s: _Seconds = 1.0
    first_trial_s: _Seconds = 0.5

    def phases(self, limits: Sequence[Limit]) -> tuple[Phase, ...]:
        """Plan the passes."""
        final_sum_s = max(self.duration_sum_s or _duration_sum_s(len(limits)), self.trial_s)
        rough, better = _ROUGH
        return (
            Phase(self.first_trial_s, self.first_trial_s, 8, rough),
            Phase(self.trial_s, max(final_sum_s / 4, self.trial_s), 2, better),
            Phase(self.trial_s, final_sum_s, 2),
        )


def _duration_sum_s(limits: int) -> float:
    """Share out the time, so that three limits far from each other do not take three times as long as one."""
    return _DURATION_SUM_S if limits == 1 else max(1.5 * _DURATION_SUM_S / limits, _LEAST_SUM_S)


def parse_goal(text: str) -> RateGoal:
    """Read `width=5%,exceed=0.5,sum=21s,trial=1s,first=500ms`, any of them.

    Raises:
        UsageError: it is no goal.
    """
    goal = RateGoal()
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = (word.strip() for word in part.partition("="))
        field = _FIELDS.get(key)
        if field is None or not equals:
            raise UsageError(f"--goal {part!r}: one of {', '.join(f'{name}=...' for name in _FIELDS)}")
        name, read, low, high = field
        number = _number(part, read, value)
        if not low <= number <= high:
            raise UsageError(f"--goal {part!r}: out of range: {low:g} to {high:g}")
        goal = replace(goal, **{name: number})
    if goal.first_trial_s > goal.trial_s:
        raise UsageError("--goal: first= is longer than trial=: the first trials are the short ones")
    return goal


def _number(part: str, read: Callable[[str], float], value: str) -> float:
    try:
        return read(value)
    except (ValueError, UsageError):
        raise UsageError(f"--goal {part!r}: write it like {_EXAMPLE}") from None


def _share(text: str) -> float:
    number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    return number if math.isfinite(number) else math.nan


_EXAMPLE = "width=5%,exceed=0.5,sum=21s,trial=1s,first=500ms"
_FIELDS: dict[str, tuple[str, Callable[[str], float], float, float]] = {
    "width": ("width", _share, 0.005, 0.5),
    "exceed": ("exceed_ratio", _share, 0.0, 0.9),
    "sum": ("duration_sum_s", parse_duration, 1.0, 3600.0),
    "trial": ("trial_s", parse_duration, 0.2, 60.0),
    "first": ("first_trial_s", parse_duration, 0.2, 60.0),
}
