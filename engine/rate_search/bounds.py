"""Is a rate a lower bound, an upper bound, or undecided? By its I/Os, and by its time as RFC 9971 classifies loads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

from engine.rate_search.goal import Phase, allowed_share
from engine.rate_search.pooled import Pooled, blocks
from engine.rate_search.trial import RateTrial
from engine.sweep.limit import Limit

_ROUNDING = 0.02
"""Trials that are shorter than wanted by so little are not short: clocks and epochs do not end on the dot."""


class LoadClass(StrEnum):
    """What is certain of a rate, whatever the time that is left at it may show."""

    LOWER = "lower bound"
    UPPER = "upper bound"
    UNDECIDED = "undecided"


def classify(trials: Sequence[RateTrial], limit: Limit, phase: Phase, exceed_ratio: float) -> LoadClass:
    """Classify one rate by all trials at it.

    A lower bound keeps the limit over all its I/Os together, as many as the limit needs, and for most of the time.
    Where only one of both is so, as after a stall, it is measured for longer before it is refused.
    """
    return _class_of(trials, limit, phase, exceed_ratio) if trials else LoadClass.UNDECIDED


def _class_of(trials: Sequence[RateTrial], limit: Limit, phase: Phase, exceed_ratio: float) -> LoadClass:
    rate, pooled, least_ios = trials[0].rate, Pooled.of(trials, limit), phase.least_ios(limit)
    expected = max(pooled.ios, rate * phase.longest_at(rate, limit), least_ios)
    if pooled.over > max(allowed_share(limit) * expected, 0.5):
        return LoadClass.UPPER  # even if all further I/Os kept it
    keeps = pooled.keeps(limit) and pooled.unsustained_s <= exceed_ratio * pooled.duration_s
    of_time = _class_of_time(blocks(trials, limit, least_ios), limit, phase, rate, exceed_ratio)
    if is_out_of_time(trials, limit, phase):
        if keeps and pooled.ios < least_ios:
            return LoadClass.UNDECIDED
        return LoadClass.LOWER if keeps and of_time is not LoadClass.UPPER else LoadClass.UPPER
    is_usual_time_over = has_usual_time(trials, limit, phase)
    is_lower = of_time is LoadClass.LOWER and keeps and (is_usual_time_over or pooled.is_clear(limit))
    is_upper = of_time is LoadClass.UPPER and (is_usual_time_over or not keeps)
    return of_time if is_lower or is_upper else LoadClass.UNDECIDED


def has_usual_time(trials: Sequence[RateTrial], limit: Limit, phase: Phase) -> bool:
    """Whether a rate had the time after which it is decided where I/Os and time agree."""
    usual_s = phase.time_at(trials[0].rate, limit) * (1 - _ROUNDING)
    return sum(trial.duration_s for trial in trials) >= usual_s


def is_out_of_time(trials: Sequence[RateTrial], limit: Limit, phase: Phase) -> bool:
    """Whether a rate had all the time that is given to one, whatever came of it."""
    if not trials:
        return False
    longest_s = phase.longest_at(trials[0].rate, limit) * (1 - _ROUNDING)
    return sum(trial.duration_s for trial in trials) >= longest_s


def _class_of_time(parts: Iterable[Pooled], limit: Limit, phase: Phase, rate: float, exceed_ratio: float) -> LoadClass:
    """Classify by the time in which a limit was kept (RFC 9971, appendix A)."""
    long_s = phase.trial_s * (1 - _ROUNDING)
    good_long = bad_long = good_short = bad_short = 0.0
    for part in parts:
        is_good = part.keeps(limit) and not part.unsustained_s
        if part.duration_s >= long_s:
            good_long, bad_long = good_long + is_good * part.duration_s, bad_long + (not is_good) * part.duration_s
        else:
            good_short, bad_short = good_short + is_good * part.duration_s, bad_short + (not is_good) * part.duration_s
    balancing = good_short * exceed_ratio / (1 - exceed_ratio)
    bad = bad_long + max(0.0, bad_short - balancing)
    whole = max(good_long + bad, phase.time_at(rate, limit) * (1 - _ROUNDING))
    quantile = whole * exceed_ratio
    optimistic, pessimistic = bad <= quantile, whole - good_long <= quantile
    if optimistic and pessimistic:
        return LoadClass.LOWER
    return LoadClass.UNDECIDED if optimistic or pessimistic else LoadClass.UPPER
