"""What the trials of a search say of each rate, kept from one step to the next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct, field

from engine.rate_search.bounds import LoadClass, classify, is_out_of_time
from engine.rate_search.goal import Phase
from engine.rate_search.grid import RateGrid
from engine.rate_search.rounds import MOST_ROUNDS, Rounds, add_to_round, is_contradicted, rests_on_one_trial
from engine.rate_search.trial import RateStage, RateTrial
from engine.sweep.limit import Limit

Groups: TypeAlias = Mapping[float, Sequence[RateTrial]]
"""Trials by their rate."""


class Bounds(Struct, frozen=True):
    """Indices of the relevant bounds of one limit; None where there is none."""

    lower: int | None
    upper: int | None
    undecided: tuple[int, ...] = ()
    """Measured between the bounds and not decided."""
    lowers: int = 0
    """How many rates are lower bounds."""
    uppers: int = 0

    @classmethod
    def of(cls, grid: RateGrid, by_rate: Mapping[float, LoadClass]) -> Bounds:
        """Find the relevant bounds: the lowest rate that is an upper bound, the highest lower bound below it."""
        classes = {grid.nearest(rate): found for rate, found in by_rate.items()}
        upper = max((index for index, found in classes.items() if found is LoadClass.UPPER), default=None)
        below = -1 if upper is None else upper
        lower = min(
            (index for index, found in classes.items() if found is LoadClass.LOWER and index > below), default=None
        )
        last = grid.last + 1 if lower is None else lower
        undecided = (i for i, found in classes.items() if found is LoadClass.UNDECIDED and below < i < last)
        counts = Counter(classes.values())
        return cls(lower, upper, tuple(sorted(undecided)), counts[LoadClass.LOWER], counts[LoadClass.UPPER])


class Disputed(Struct, frozen=True):
    """A rate that is measured again."""

    rate: float
    is_new: bool
    """Whether a new round begins."""


class _Classes(Struct):
    """Classes of the rates for one limit in one phase, and the bounds that follow from them."""

    by_rate: dict[float, LoadClass] = field(default_factory=dict)
    seen: int = 0
    """Trials of the grid that are in them."""
    grid: RateGrid | None = None
    """Grid of the bounds; None: they do not follow from these classes."""
    bounds: Bounds = field(default_factory=lambda: Bounds(None, None))


class KnownTrials:
    """Trials by their rate, with the class of each rate.

    A search asks for the classes of all rates after every trial, for each limit and phase; only that of the rate just
    measured may be another.
    """

    def __init__(self) -> None:
        self._trials: list[RateTrial] = []
        self._rates: list[float] = []
        """Rates of the trials on the grid, in their order."""
        self.to_maximum: dict[float, list[RateTrial]] = {}
        self.on_grid: dict[float, list[RateTrial]] = {}
        """Trials of the newest round at each rate."""
        self._rounds: Rounds = {}
        self.is_maximum_again = False
        """Whether the maximum was measured again after rates of the grid."""
        self._classes: dict[tuple[Limit, Phase, float], _Classes] = {}

    def follow(self, trials: Sequence[RateTrial]) -> None:
        """Know these trials and no other."""
        known = len(self._trials)
        if list(trials[:known]) != self._trials:
            self._forget()
            known = 0
        self._add(trials[known:])

    def _forget(self) -> None:
        for each in (self._trials, self._rates, self.to_maximum, self.on_grid, self._rounds, self._classes):
            each.clear()
        self.is_maximum_again = False

    def _forget_grid(self) -> None:
        """Forget what was measured below a maximum that is measured again."""
        self.is_maximum_again = self.is_maximum_again or bool(self._rates)
        for each in (self._rates, self.on_grid, self._rounds, self._classes):
            each.clear()

    def _add(self, trials: Iterable[RateTrial]) -> None:
        for trial in trials:
            self._trials.append(trial)
            if trial.stage == RateStage.MAXIMUM:
                self._forget_grid()
                self.to_maximum.setdefault(trial.rate, []).append(trial)
                continue
            add_to_round(self._rounds, trial)
            self.on_grid[trial.rate] = self._rounds[trial.rate][-1]
            self._rates.append(trial.rate)

    def bounds(self, grid: RateGrid, limit: Limit, phase: Phase, exceed_ratio: float) -> Bounds:
        """Find the relevant bounds of a limit."""
        classes = self._updated(limit, phase, exceed_ratio)
        if classes.grid != grid:
            classes.grid, classes.bounds = grid, Bounds.of(grid, classes.by_rate)
        return classes.bounds

    def disputed(self, limit: Limit, phase: Phase, exceed_ratio: float) -> Disputed | None:
        """Return the lowest rate that exceeds the limit although a higher one keeps it, if it must be measured again.

        One that was begun to be measured again goes on until it is decided.
        """
        classes = self._updated(limit, phase, exceed_ratio).by_rate
        for rate in sorted(rate for rate, rounds in self._rounds.items() if len(rounds) > 1):
            if classes[rate] is LoadClass.UNDECIDED and not is_out_of_time(self.on_grid[rate], limit, phase):
                before = (classify(each, limit, phase, exceed_ratio) for each in self._rounds[rate][:-1])
                if LoadClass.UPPER in before:
                    return Disputed(rate, is_new=False)
        upper = min((rate for rate, found in classes.items() if found is LoadClass.UPPER), default=None)
        if upper is None or not self._may_be_again(upper):
            return None
        return Disputed(upper, is_new=True) if is_contradicted(upper, self.on_grid, classes, limit, phase) else None

    def is_doubtful(self, rate: float, limit: Limit) -> bool:
        """Whether a rate that bounds the answer is refused by one trial only, and may be measured again."""
        return self._may_be_again(rate) and rests_on_one_trial(self.on_grid[rate], limit)

    def _may_be_again(self, rate: float) -> bool:
        return len(self._rounds[rate]) < MOST_ROUNDS

    def _updated(self, limit: Limit, phase: Phase, exceed_ratio: float) -> _Classes:
        classes = self._classes.setdefault((limit, phase, exceed_ratio), _Classes())
        for rate in dict.fromkeys(self._rates[classes.seen :]):
            found = classify(self.on_grid[rate], limit, phase, exceed_ratio)
            if classes.by_rate.get(rate) is not found:
                classes.by_rate[rate], classes.grid = found, None
        classes.seen = len(self._rates)
        return classes
