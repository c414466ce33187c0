"""What the trials of a search say of each limit."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

from engine.rate_search.bounds import LoadClass, classify, conditional_throughput
from engine.rate_search.grid import RateGrid
from engine.rate_search.search import RateSearch, on_grid
from engine.rate_search.trial import RateTrial
from engine.sweep.limit import Limit


class RateVerdict(StrEnum):
    """How the search for one limit ended."""

    FOUND = "found"
    ALL_KEEP = "highest rate keeps it"
    NONE_KEEPS = "no rate keeps it"
    UNDECIDED = "undecided"
    """It was stopped before the bounds were near enough."""


class RateBound(Struct, frozen=True):
    """A rate with its class."""

    rate: float
    good: int
    """Trials that kept the limit."""
    bad: int
    exceeded_s: float
    """Duration of the bad ones."""
    excess: float
    """Share of all I/Os at this rate, in all trials together, that took longer than the limit."""
    latency_ns: float | None
    """Median over the trials of what is limited."""

    @classmethod
    def of(cls, trials: Sequence[RateTrial], limit: Limit) -> RateBound:
        """Sum up the trials of one rate."""
        bad = [trial for trial in trials if not trial.keeps(limit)]
        ios = sum(trial.ios for trial in trials)
        over = sum(trial.excess_of(limit) * max(trial.ios, 1) for trial in trials)
        known = [trial.latencies_ns[limit.metric] for trial in trials if limit.metric in trial.latencies_ns]
        return cls(
            trials[0].rate,
            len(trials) - len(bad),
            len(bad),
            sum(trial.duration_s for trial in bad),
            min(over / max(ios, len(trials)), 1.0),
            statistics.median(known) if known else None,
        )


class RateAnswer(Struct, frozen=True):
    """The highest rate that keeps one limit."""

    limit: Limit
    verdict: RateVerdict
    lower: RateBound | None = None
    """Relevant lower bound: the rate to use."""
    upper: RateBound | None = None
    conditional: float | None = None
    """Conditional throughput at the lower bound: I/Os per second within the limit."""
    undecided: tuple[float, ...] = ()
    """Rates between the bounds, measured and neither."""


class RateAnswers(Struct, frozen=True):
    """Everything a search says."""

    limits: tuple[RateAnswer, ...]
    maximum: float | None = None
    """Highest throughput that the load reached; the search goes no further."""
    is_capped: bool = False
    """Whether the load carried the highest rate asked for, so that its maximum is above."""


def rate_answers(search: RateSearch, trials: Sequence[RateTrial]) -> RateAnswers:
    """Evaluate the trials so far, complete or not."""
    grid = search.grid(trials)
    if grid is None:
        return RateAnswers(tuple(RateAnswer(limit, RateVerdict.UNDECIDED) for limit in search.limits))
    answers = tuple(_answer(search, grid, trials, limit) for limit in search.limits)
    return RateAnswers(answers, grid.highest, is_capped=search.is_capped(trials))


def _answer(search: RateSearch, grid: RateGrid, trials: Sequence[RateTrial], limit: Limit) -> RateAnswer:
    phase, ratio = search.phases(grid)[-1], search.goal.exceed_ratio
    groups = on_grid(trials)
    found = search.bounds(groups, grid, limit, phase)
    lower, upper = (None if index is None else grid.rate(index) for index in (found.lower, found.upper))
    undecided = tuple(
        rate
        for rate, group in sorted(groups.items())
        if (lower or 0.0) < rate < (upper or grid.highest * 2)
        and classify(group, limit, phase, ratio) is LoadClass.UNDECIDED
    )
    return RateAnswer(
        limit,
        _verdict(grid, found.lower, found.upper),
        None if lower is None else RateBound.of(groups[lower], limit),
        None if upper is None else RateBound.of(groups[upper], limit),
        None if lower is None else conditional_throughput(groups[lower], limit, phase, ratio),
        undecided,
    )


def _verdict(grid: RateGrid, lower: int | None, upper: int | None) -> RateVerdict:
    if lower == 0:
        return RateVerdict.ALL_KEEP
    if lower is None and upper == grid.last:
        return RateVerdict.NONE_KEEPS
    if lower is None or upper is None or lower - upper > 1:
        return RateVerdict.UNDECIDED
    return RateVerdict.FOUND
