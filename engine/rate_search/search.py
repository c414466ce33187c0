"""Which rate to measure next, and for how long: a pure function of the trials so far, so that it goes on from a file.

First the maximum: rates rise until the load no longer carries them; such a trial keeps every slot busy, as a closed
loop does, and its throughput bounds the search. Then a ladder, one trial per rate, which all limits share. Then phases
with more and longer trials; in each the bounds of every limit are brought together on one grid of rates (RFC 9971:
expand, halve, refine), so that limits that are kept up to about the same rate share their trials.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from msgspec import Struct, field

from engine.job.limits import MAX_ARRIVALS_PER_S
from engine.rate_search.bounds import classify, is_out_of_time
from engine.rate_search.goal import Phase, RateGoal, lowest_rate
from engine.rate_search.grid import LOWEST_SHARE, RateGrid, rounded
from engine.rate_search.known import Bounds, Groups, KnownTrials
from engine.rate_search.trial import SUSTAINED, RateStage, RateTrial
from engine.sweep.limit import Limit

FIRST_RATE = 10_000.0
_FASTER = 4.0
"""Factor from one rate to the next on the way to the maximum."""
_OVERLOADS = 3
"""Trials that must fall short of a rate before it is taken as too high: a single one may have met a stall."""
_MOST_TRIALS = 2000
_IOS_OF_MAXIMUM = 15_000
"""I/Os of all trials that fell short: at random, their number is off by 1 %."""
_WHOLE = 0.98
"""Share of the wanted duration of a trial from which it is not short."""
_ALIKE = 0.05
"""How far throughputs of saturated loads are from their median by chance at most."""
_LONGEST_OF_MAXIMUM_S = 5.0
_LEAST_RANGE = 1 / 4
"""Share of the maximum from which the search goes down to rates that take longer than is given to one."""
_ROUNDED = 1.001
"""Ratio of two rates by which rounding to four digits may change it."""
_FARTHEST = 16
"""Steps by which a bound is searched further out at a time."""


class WantedTrial(Struct, frozen=True):
    """What to measure next."""

    rate: float
    duration_s: float
    stage: RateStage


class RateSearch(Struct, frozen=True):
    """The search for all limits at once."""

    limits: tuple[Limit, ...]
    goal: RateGoal = field(default_factory=RateGoal)
    low: float | None = None
    high: float | None = None
    """No rate beyond is tried; None: up to the maximum."""

    def next_trial(self, trials: Sequence[RateTrial], known: KnownTrials | None = None) -> WantedTrial | None:
        """Choose the next trial; None when every limit is decided as far as it can be.

        With what is known of the trials of the step before, only the new ones are looked at; the choice is the same.
        """
        if len(trials) >= _MOST_TRIALS:
            return None
        known = known or KnownTrials()
        known.follow(trials)
        grid = self._grid(known.to_maximum)
        if grid is None:
            return self._next_for_maximum(known.to_maximum)
        phases = self.phases
        if self._is_maximum_doubtful(known, grid, phases):
            return self._next_for_maximum(known.to_maximum)
        for index in grid.ladder():
            if grid.rate(index) not in known.on_grid:
                return WantedTrial(grid.rate(index), phases[0].trial_s, RateStage.LADDER)
        return self._next_of_phases(known, grid.nearest(trials[-1].rate), grid, phases)

    @property
    def phases(self) -> tuple[Phase, ...]:
        """Passes of the search."""
        return self.goal.phases(self.limits)

    def grid(self, trials: Sequence[RateTrial]) -> RateGrid | None:
        """Lay the grid below the maximum; None while that is not known."""
        return self._grid(_to_maximum(trials))

    def _grid(self, to_maximum: Groups) -> RateGrid | None:
        maximum = self._maximum(to_maximum)
        if maximum is None:
            return None
        highest = max(min(maximum, self.high or maximum), 1.0)
        usual = max(highest * LOWEST_SHARE, min(lowest_rate(self.limits), highest * _LEAST_RANGE), 0.1)
        lowest = min(usual if self.low is None else self.low, highest)
        return RateGrid(rounded(highest), lowest, math.sqrt((1 + self.goal.width) / _ROUNDED) - 1)

    def is_capped(self, trials: Sequence[RateTrial]) -> bool:
        """Whether the load carried the highest rate allowed."""
        return self.is_known_capped(_to_maximum(trials))

    def is_known_capped(self, to_maximum: Groups) -> bool:
        """Whether it did so in trials by their rate."""
        return any(is_carried(trial) for trial in to_maximum.get(self._highest_rate, ()))

    def _maximum(self, to_maximum: Groups) -> float | None:
        """Throughput of the load, or the highest rate allowed if it carries that."""
        for rate, group in to_maximum.items():
            carried = any(is_carried(trial) for trial in group)
            if carried and rate >= self._highest_rate:
                return rate
            whole = [trial.iops for trial in group if trial.duration_s >= self._overload_s(group) * _WHOLE]
            if not carried and len(whole) >= _OVERLOADS:
                return _throughput(whole)
        return None

    def _is_maximum_doubtful(self, known: KnownTrials, grid: RateGrid, phases: Sequence[Phase]) -> bool:
        """Whether the maximum must be measured again, as a limit is kept there: a stall may have made it too low."""
        if self.is_known_capped(known.to_maximum):
            return False
        *_, overloads = known.to_maximum.values()
        if len(overloads) >= 2 * _OVERLOADS + 1:  # the first may be too short to count
            return False
        return known.is_maximum_again or any(
            known.bounds(grid, limit, phase, self.goal.exceed_ratio).lower == 0
            for limit in self.limits
            for phase in phases
        )

    @property
    def _highest_rate(self) -> float:
        return min(self.high or MAX_ARRIVALS_PER_S, MAX_ARRIVALS_PER_S)

    def _next_for_maximum(self, to_maximum: Groups) -> WantedTrial:
        rate = min(max(FIRST_RATE, self.low or 0.0), self._highest_rate)
        while any(is_carried(trial) for trial in to_maximum.get(rate, ())):
            rate = min(rate * _FASTER, self._highest_rate)
        return WantedTrial(rate, self._overload_s(to_maximum.get(rate, ())), RateStage.MAXIMUM)

    def _overload_s(self, group: Sequence[RateTrial]) -> float:
        """Duration of a trial that falls short, by the throughput of those that did."""
        iops = max((trial.iops for trial in group), default=0.0)
        wanted_s = min(_IOS_OF_MAXIMUM / _OVERLOADS / iops, _LONGEST_OF_MAXIMUM_S) if iops else 0.0
        return max(self.goal.trial_s, wanted_s)

    def bounds(self, groups: Groups, grid: RateGrid, limit: Limit, phase: Phase) -> Bounds:
        """Find the relevant bounds among trials by their rate."""
        ratio = self.goal.exceed_ratio
        return Bounds.of(grid, {rate: classify(group, limit, phase, ratio) for rate, group in groups.items()})

    def _next_of_phases(
        self, known: KnownTrials, here: int, grid: RateGrid, phases: Sequence[Phase]
    ) -> WantedTrial | None:
        before = [Bounds(None, None)] * len(self.limits)
        for phase in phases:
            now = [known.bounds(grid, limit, phase, self.goal.exceed_ratio) for limit in self.limits]
            wanted: dict[int, list[Limit]] = {}
            again = set[int]()
            for limit, each, last in zip(self.limits, now, before, strict=True):
                index, is_new = self._wanted(known, grid, (limit, phase), each, last)
                if index is not None:
                    wanted.setdefault(index, []).append(limit)
                    again |= {index} if is_new else set()
            if wanted:
                # Staying saves the turn; what most limits want comes next.
                index = here if here in wanted else max(wanted, key=lambda each: (len(wanted[each]), each))
                longest_s = max(phase.trial_at(grid.rate(index), limit) for limit in wanted[index])
                stage = RateStage.AGAIN if index in again else RateStage.SEARCH
                return WantedTrial(grid.rate(index), longest_s, stage)
            before = now
        return None

    def _wanted(
        self, known: KnownTrials, grid: RateGrid, of: tuple[Limit, Phase], now: Bounds, before: Bounds
    ) -> tuple[int | None, bool]:
        """Choose the rate to measure next for one limit in a phase, and whether that is a new round at it."""
        limit, phase = of
        disputed = known.disputed(limit, phase, self.goal.exceed_ratio)
        if disputed is not None:
            return grid.nearest(disputed.rate), disputed.is_new
        index = _next_index(grid, now, before, phase.steps)
        is_answer = index is None and phase == self.phases[-1] and now.upper is not None
        if is_answer and now.upper is not None and known.is_doubtful(grid.rate(now.upper), limit):
            return now.upper, True
        if index is None or is_out_of_time(known.on_grid.get(grid.rate(index), ()), limit, phase):
            return None, False
        return index, False


def is_carried(trial: RateTrial) -> bool:
    """Whether as many I/Os completed as arrived, on the way to the maximum."""
    return trial.iops >= SUSTAINED * trial.rate and not trial.skipped


def _throughput(iops: Sequence[float]) -> float:
    """Mean of several measurements, without those in which something stalled.

    Those that were made again count if they differ: all of the first may have met one stall.
    """
    first, again = (_typical(each) for each in (iops[:_OVERLOADS], iops[_OVERLOADS:]))
    return again if len(iops) >= 2 * _OVERLOADS and again > first * (1 + _ALIKE) else first


def _typical(iops: Sequence[float]) -> float:
    middle = statistics.median(iops) if iops else 0.0
    return statistics.fmean(each for each in iops if abs(each - middle) <= _ALIKE * middle) if iops else 0.0


def _to_maximum(trials: Sequence[RateTrial]) -> Groups:
    groups: dict[float, list[RateTrial]] = {}
    for trial in trials:
        if trial.stage == RateStage.MAXIMUM:
            groups.setdefault(trial.rate, []).append(trial)
    return groups


def _next_index(grid: RateGrid, now: Bounds, before: Bounds, steps: int) -> int | None:
    """Choose the rate whose class is needed next for one limit; None if its bounds are near enough.

    Where a bound is missing, that of the phase before is tried, then rates farther and farther out.
    """
    upper, lower = now.upper, now.lower
    if upper is None and lower is None:
        known = before.upper if before.lower is None else before.lower
        return grid.nearest(grid.highest / 2) if known is None else known
    if lower is None and upper is not None:
        return None if upper == grid.last else _below(grid, upper, now, before, steps)
    if upper is None and lower is not None:
        return None if lower == 0 else _above(lower, now, before, steps)
    assert upper is not None
    assert lower is not None
    return None if lower - upper <= steps else _between(upper, lower, now)


def _below(grid: RateGrid, upper: int, now: Bounds, before: Bounds, steps: int) -> int:
    if before.lower is not None and before.lower > upper:
        return before.lower
    farthest = min(upper + _reach(steps, now.uppers), grid.last)
    return min((index for index in now.undecided if index > upper), default=farthest)


def _above(lower: int, now: Bounds, before: Bounds, steps: int) -> int:
    if before.upper is not None and before.upper < lower:
        return before.upper
    farthest = max(lower - _reach(steps, now.lowers), 0)
    return min((index for index in now.undecided if farthest <= index < lower), default=farthest)


def _reach(steps: int, tried: int) -> int:
    return min(steps << max(tried - 1, 0), max(steps, _FARTHEST)) if tried < 16 else _FARTHEST


def _between(upper: int, lower: int, now: Bounds) -> int:
    """Take the middle, or a rate near it that has trials for other limits, or from the ladder."""
    middle, near = (upper + lower) // 2, (lower - upper) // 4
    undecided = (index for index in now.undecided if abs(index - middle) <= near)
    return min(undecided, key=lambda index: abs(index - middle), default=middle)
