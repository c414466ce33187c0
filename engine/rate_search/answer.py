"""What the trials of a search say of each limit."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

from engine.rate_search.bounds import LoadClass, classify, is_out_of_time
from engine.rate_search.goal import allowed_share
from engine.rate_search.grid import RateGrid
from engine.rate_search.known import Bounds
from engine.rate_search.pooled import Pooled
from engine.rate_search.rounds import Rounds, rounds_by_rate
from engine.rate_search.search import RateSearch
from engine.rate_search.trial import RateTrial
from engine.sweep.busy_host import busy_host_pct
from engine.sweep.limit import Limit

_FAR = 1.25
"""Times the upper bound, from where it is no matter of chance that fewer I/Os keep a limit than make a lower bound."""


class RateVerdict(StrEnum):
    """How the search for one limit ended."""

    FOUND = "found"
    ALL_KEEP = "highest rate keeps it"
    NONE_KEEPS = "no rate keeps it"
    UNDECIDED = "undecided"
    """The search stopped before the bounds were near enough, or rates had too few I/Os in the time given to them."""


class RateBound(Struct, frozen=True):
    """A rate with its class."""

    rate: float
    good: int
    """Trials that kept the limit."""
    bad: int
    exceeded_s: float
    """Duration of the bad ones."""
    ios: int
    """I/Os of all trials together, on which the class rests."""
    over: int | None
    """Number of them that took longer than the limit; None where it is about the mean."""
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


class RateAgain(Struct, frozen=True):
    """A rate that exceeded a limit and was measured again, as a higher one keeps it or one trial alone exceeded it."""

    before: RateBound
    """Bound from the trials that were set aside."""
    now: RateBound
    is_kept: bool
    """Whether the trials that count keep the limit."""
    rounds: int
    """How often it was measured again."""

    @classmethod
    def of(cls, rounds: Sequence[Sequence[RateTrial]], limit: Limit) -> RateAgain:
        """Sum up the rounds of one rate."""
        now, before = rounds[-1], list(itertools.chain(*rounds[:-1]))
        is_kept = Pooled.of(now, limit).keeps(limit)
        return cls(RateBound.of(before, limit), RateBound.of(now, limit), is_kept, len(rounds) - 1)


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
    """I/Os that were measured at the undecided rates."""
    needed_s: float | None = None
    """Time at one of them that had as much as is given to a rate and too few I/Os in it; None where there is none."""
    kept_above: float | None = None
    """The highest rate above the upper bound that keeps the limit all the same; None where there is none."""
    again: tuple[RateAgain, ...] = ()
    """Rates that were measured again; those whose new trials keep the limit do not count as exceeding it."""
    stalled_share: float | None = None
    """Share of the time over the limit in all trials up to the lower bound, those set aside too, where it is too much.

    None also where nothing was set aside.
    """
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
    phase, rounds = search.phases[-1], rounds_by_rate(trials)
    groups = {rate: each[-1] for rate, each in rounds.items()}
    classes = {rate: classify(group, limit, phase, search.goal.exceed_ratio) for rate, group in groups.items()}
    found = Bounds.of(grid, classes)
    # Not by the grid: a recording of an earlier version may have another.
    rates = {grid.nearest(rate): rate for rate in groups}
    lower, upper = (None if index is None else rates[index] for index in (found.lower, found.upper))
    low, high = lower or 0.0, math.inf if upper is None else upper
    undecided = sorted(rate for rate, each in classes.items() if low < rate < high and each is LoadClass.UNDECIDED)
    bounds = [rate for rate in (lower, upper) if rate is not None] or undecided
    late = [rate for rate in undecided if is_out_of_time(groups[rate], limit, phase)]

    def is_kept_at(rate: float) -> bool:
        if rate < _FAR * high or classes[rate] is not LoadClass.UNDECIDED:
            return classes[rate] is LoadClass.LOWER
        pooled = Pooled.of(groups[rate], limit)
        return pooled.ios >= phase.least_ios(limit) and pooled.keeps(limit) and not pooled.unsustained_s

    return RateAnswer(
        limit,
        _verdict(grid, found, phase.steps),
        None if lower is None else RateBound.of(groups[lower], limit),
        None if upper is None else RateBound.of(groups[upper], limit),
        tuple(undecided),
        sum(trial.ios for rate in undecided for trial in groups[rate]),
        max((phase.least_ios(limit) / rate for rate in late), default=None),
        max((rate for rate in groups if rate > high and is_kept_at(rate)), default=None),
        tuple(RateAgain.of(each, limit) for _, each in sorted(rounds.items()) if _is_again(each, limit)),
        None if lower is None else _stalled_share(rounds, lower, limit),
        busy_host_pct(trial.host_busy_pct for rate in bounds for trial in groups[rate]),
    )


def _is_again(rounds: Sequence[Sequence[RateTrial]], limit: Limit) -> bool:
    return any(not Pooled.of(each, limit).keeps(limit) for each in rounds[:-1])


def _stalled_share(rounds: Rounds, lower: float, limit: Limit) -> float | None:
    """Weigh by time: whatever waits for a stall is over the limit, at any rate."""
    trials = [trial for rate, each in rounds.items() if rate <= lower for trial in itertools.chain(*each)]
    if limit.metric == "mean" or not any(_is_again(each, limit) for rate, each in rounds.items() if rate <= lower):
        return None
    share = math.fsum(trial.excess_of(limit) * trial.duration_s for trial in trials)
    share /= math.fsum(trial.duration_s for trial in trials)
    return share if share > allowed_share(limit) else None


def _verdict(grid: RateGrid, found: Bounds, steps: int) -> RateVerdict:
    lower, upper = found.lower, found.upper
    if lower == 0:
        return RateVerdict.ALL_KEEP
    if lower is None and upper == grid.last:
        return RateVerdict.NONE_KEEPS
    if lower is None or upper is None or lower - upper > steps:
        return RateVerdict.UNDECIDED
    return RateVerdict.FOUND
