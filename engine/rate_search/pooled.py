"""All I/Os of several trials at one rate together: a percentile of the few I/Os of one trial says nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from engine.rate_search.goal import allowed_share
from engine.rate_search.trial import PATIENCE_S, RateTrial
from engine.sweep.limit import Limit

_CLEAR = 0.5
"""Share of the I/Os allowed beyond a percentile up to which no further I/Os are needed to see that a limit is kept."""
_ROUNDING = 1e-6


class Pooled(Struct, frozen=True):
    """Trials at one rate, for one limit."""

    duration_s: float
    ios: int
    """I/Os that completed, failed or were skipped."""
    over: float
    """Number of them that took longer than the limit; 0 where it is about the mean."""
    mean_ns: float
    """Mean of all I/Os, where those that did not complete count with the longest wait; 0 without a limit on it."""
    unsustained_s: float
    """Duration of the trials that did not carry the rate."""

    @classmethod
    def of(cls, trials: Iterable[RateTrial], limit: Limit) -> Pooled:
        """Add up trials of one rate."""
        sums = _PooledCounts(limit)
        for trial in trials:
            sums.add(trial)
        return sums.pooled

    @property
    def share(self) -> float:
        """Share of the I/Os over the limit."""
        return min(self.over / self.ios, 1.0) if self.ios else 0.0

    def keeps(self, limit: Limit) -> bool:
        """Whether all I/Os together keep the limit."""
        if limit.metric == "mean":
            return self.mean_ns <= limit.limit_ns
        return self.over <= allowed_share(limit) * self.ios + _ROUNDING

    def is_clear(self, limit: Limit) -> bool:
        """Whether they keep it so clearly that chance makes no difference."""
        return self.keeps(limit) and self.over <= _CLEAR * allowed_share(limit) * self.ios + _ROUNDING


class _PooledCounts:
    """Adds up; a search does so for all trials of a rate after each of them."""

    def __init__(self, limit: Limit) -> None:
        self._text, self._is_mean = limit.text, limit.metric == "mean"
        self.duration_s = self.over = self.time_ns = self.unsustained_s = 0.0
        self.ios = 0

    def add(self, trial: RateTrial) -> None:
        count = trial.ios + trial.skipped + trial.errors
        if not count and trial.excess.get(self._text, 1.0):
            count = max(round(trial.rate * trial.duration_s), 1)  # none of those that were due completed
        self.duration_s += trial.duration_s
        self.ios += count
        if self._is_mean:
            done = trial.ios if "mean" in trial.latencies_ns else 0
            self.time_ns += trial.latencies_ns.get("mean", 0.0) * done + (count - done) * PATIENCE_S * 1e9
        else:
            self.over += trial.excess.get(self._text, 1.0) * count
        if not trial.is_sustained:
            self.unsustained_s += trial.duration_s

    @property
    def pooled(self) -> Pooled:
        mean_ns = self.time_ns / self.ios if self.ios else 0.0
        return Pooled(self.duration_s, self.ios, self.over, mean_ns, self.unsustained_s)


def blocks(trials: Iterable[RateTrial], limit: Limit, least_ios: float) -> Iterator[Pooled]:
    """Yield trials in a row as one until they have as many I/Os as a limit needs, or exceed it whatever else comes.

    What is left over at the end, with fewer I/Os, says nothing yet.
    """
    most_over, sums = allowed_share(limit) * least_ios + _ROUNDING, _PooledCounts(limit)
    for trial in trials:
        sums.add(trial)
        if sums.ios >= least_ios or sums.over > most_over or sums.unsustained_s:
            yield sums.pooled
            sums = _PooledCounts(limit)
