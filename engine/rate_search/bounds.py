"""Is a rate a lower bound, an upper bound, or undecided? Load classification of RFC 9971, appendices A and B."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from engine.rate_search.goal import Phase
from engine.rate_search.trial import RateTrial, kept_by
from engine.sweep.limit import Limit

_ROUNDING = 0.02
"""Trials that are shorter than wanted by so little are not short: clocks and epochs do not end on the dot."""


class LoadClass(StrEnum):
    """What is certain of a rate, whatever the time that is left at it may show."""

    LOWER = "lower bound"
    UPPER = "upper bound"
    UNDECIDED = "undecided"


def classify(trials: Sequence[RateTrial], limit: Limit, phase: Phase, exceed_ratio: float) -> LoadClass:
    """Classify one rate by all trials at it (RFC 9971, appendix A)."""
    long_s, keeps = phase.trial_s * (1 - _ROUNDING), kept_by(limit)
    good_long = bad_long = good_short = bad_short = 0.0
    # Each step of a search classifies all rates, for each limit and phase.
    for trial in trials:
        duration_s = trial.duration_s
        if duration_s >= long_s:
            if keeps(trial):
                good_long += duration_s
            else:
                bad_long += duration_s
        elif keeps(trial):
            good_short += duration_s
        else:
            bad_short += duration_s
    balancing = good_short * exceed_ratio / (1 - exceed_ratio)
    bad = bad_long + max(0.0, bad_short - balancing)
    whole = max(good_long + bad, phase.duration_sum_s * (1 - _ROUNDING))
    quantile = whole * exceed_ratio
    optimistic, pessimistic = bad <= quantile, whole - good_long <= quantile
    if optimistic and pessimistic:
        return LoadClass.LOWER
    return LoadClass.UNDECIDED if optimistic or pessimistic else LoadClass.UPPER


def conditional_throughput(trials: Sequence[RateTrial], limit: Limit, phase: Phase, exceed_ratio: float) -> float:
    """I/Os per second within a limit, in the trial at the quantile of the exceed ratio (RFC 9971, appendix B).

    The trials are of one rate, at least one.
    """
    long = [trial for trial in trials if trial.duration_s >= phase.trial_s * (1 - _ROUNDING)]
    whole_s = max(phase.duration_sum_s * (1 - _ROUNDING), sum(trial.duration_s for trial in long))
    left_s = whole_s * (1 - exceed_ratio)
    share: float | None = None
    for trial in sorted(long, key=lambda trial: trial.excess_of(limit)):
        if share is not None and left_s <= 0:
            break
        share = trial.excess_of(limit)
        left_s -= trial.duration_s
    if share is None or left_s > 0:
        share = 1.0
    return trials[0].rate * (1 - share)
