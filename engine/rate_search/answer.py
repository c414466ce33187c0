"""What the trials of a search say of each limit."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

from engine.rate_search.bounds import LoadClass, classify, is_out_of_time
from engine.rate_search.grid import RateGrid
from engine.rate_search.known import Bounds
from engine.rate_search.pooled import Pooled
from engine.rate_search.search import RateSearch, on_grid
from engine.rate_search.trial import RateTrial
from engine.sweep.busy_host import busy_host_pct
from engine.sweep.limit import Limit


class RateVerdict(StrEnum):
    """How the search for one limit ended."""

    FOUND = "found"
    ALL_KEEP = "highest rate keeps it"
    NONE_KEEPS = "no rate keeps it"
    UNDECIDED = "undecided"
    """It was stopped before the bounds were near enough, or rates had too few I/Os in the time given to them."""


class RateBound(Struct, frozen=True):
    """A rate with its class."""

    rate: float
    good: int
    """Trials that kept the limit."""
    bad: int
    exceeded_s: float
    """Duration of the bad ones."""
    ios: int
    """Of all trials together, which the class rests on."""
    over: int | None
    """Of them, that took longer than the limit; None where it is about the mean."""
    latency_ns: float | None
    """What is limited: the mean of all I/Os, or else the median over the trials."""

    @property
    def excess(self) -> float | None:
        """Share of all I/Os at this rate that took longer than the limit; None where it is about the mean."""
        return None if self.over is None else min(self.over / max(self.ios, 1), 1.0)

    @classmethod
    def of(cls, trials: Sequence[RateTrial], limit: Limit) -> RateBound:
        """Sum up the trials of one rate."""
        bad, pooled = [trial for trial in trials if not trial.keeps(limit)], Pooled.of(trials, limit)
        known = [trial.latencies_ns[limit.metric] for trial in trials if limit.metric in trial.latencies_ns]
        latency_ns = statistics.median(known) if known else None
        is_mean = limit.metric == "mean"
        return cls(
            trials[0].rate,
            len(trials) - len(bad),
            len(bad),
            sum(trial.duration_s for trial in bad),
            pooled.ios,
            None if is_mean else round(pooled.over),
            pooled.mean_ns if is_mean else latency_ns,
        )


class RateAnswer(Struct, frozen=True):
    """The highest rate that keeps one limit."""

    limit: Limit
    verdict: RateVerdict
    lower: RateBound | None = None
    """Relevant lower bound: the rate to use."""
    upper: RateBound | None = None
    undecided: tuple[float, ...] = ()
    """Rates between the bounds, measured and neither."""
    undecided_ios: int = 0
    """That were measured at them."""
    needed_s: float | None = None
    """Time at one of them that had as much as is given to a rate and too few I/Os in it; None where there is none."""
    kept_above: float | None = None
    """The highest rate above the upper bound that keeps the limit all the same; None where there is none."""
    host_busy_pct: float | None = None
    """How busy the host was while the bounds were measured; None where it had processors left."""

    @property
    def conditional(self) -> float | None:
        """Conditional throughput at the lower bound: I/Os per second within the limit; None of a mean."""
        excess = None if self.lower is None else self.lower.excess
        return None if self.lower is None or excess is None else self.lower.rate * (1 - excess)


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
    phase, groups = search.phases[-1], on_grid(trials)
    classes = {rate: classify(group, limit, phase, search.goal.exceed_ratio) for rate, group in groups.items()}
    found = Bounds.of(grid, classes)
    lower, upper = (None if index is None else grid.rate(index) for index in (found.lower, found.upper))
    low, high = lower or 0.0, math.inf if upper is None else upper
    undecided = sorted(rate for rate, each in classes.items() if low < rate < high and each is LoadClass.UNDECIDED)
    bounds = [rate for rate in (lower, upper) if rate is not None] or undecided
    late = [rate for rate in undecided if is_out_of_time(groups[rate], limit, phase)]
    return RateAnswer(
        limit,
        _verdict(grid, found.lower, found.upper),
        None if lower is None else RateBound.of(groups[lower], limit),
        None if upper is None else RateBound.of(groups[upper], limit),
        tuple(undecided),
        sum(trial.ios for rate in undecided for trial in groups[rate]),
        max((phase.least_ios(limit) / rate for rate in late), default=None),
        max((rate for rate, each in classes.items() if rate > high and each is LoadClass.LOWER), default=None),
        busy_host_pct(trial.host_busy_pct for rate in bounds for trial in groups[rate]),
    )


def _verdict(grid: RateGrid, lower: int | None, upper: int | None) -> RateVerdict:
    if lower == 0:
        return RateVerdict.ALL_KEEP
    if lower is None and upper == grid.last:
        return RateVerdict.NONE_KEEPS
    if lower is None or upper is None or lower - upper > 1:
        return RateVerdict.UNDECIDED
    return RateVerdict.FOUND
