"""What one trial of an open loop at one rate gave, and what share of it exceeded each limit."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct, field

from engine.rate_search.goal import allowed_share
from engine.results.histogram import middles_ns
from engine.results.measured import Measured
from engine.study.decoded import Count, Figure, Positive
from engine.study.load import Observed
from engine.study.trial_file import trial_kind
from engine.sweep.limit import Limit

PATIENCE_S = 1.0
"""How long an arrival waits for a free slot before it is skipped (schedule.rs)."""
SUSTAINED = 0.95
"""Share of the arrivals that complete where the rate is carried; below, the backlog grows for as long as it lasts."""
_FEW = 5.0
"""Arrivals expected, where none may still be chance."""
_DEVIATIONS = 3.0
"""Standard deviations that the number of Poisson arrivals may be off."""


class RateStage(StrEnum):
    """Parts of the search, in their order."""

    MAXIMUM = "maximum"
    LADDER = "ladder"
    SEARCH = "search"
    AGAIN = "again"
    """The first of a new round at its rate, whose earlier trials are set aside."""
    STEP = "step"
    """A step of given rates, without a search."""


_StageName = Annotated[str, Meta(pattern=f"^({'|'.join(RateStage)})$")]


class RateTrial(Struct, frozen=True, forbid_unknown_fields=True):
    """One trial; latencies count from the time an I/O was due."""

    rate: Positive
    """Intended, I/Os per second."""
    duration_s: Positive
    iops: Figure
    ios: Count = 0
    skipped: Count = 0
    """Arrivals that found no free slot within a second; they exceed every limit."""
    errors: Count = 0
    latencies_ns: Mapping[str, Figure] = field(default_factory=dict)
    """mean, p50, p90, p99, p99.9 and max."""
    excess: Mapping[str, Figure] = field(default_factory=dict)
    """Share of the I/Os that took longer than each limit, by its text; the trial loss ratio of RFC 9971."""
    is_sustained: bool = True
    """Whether as many I/Os completed as arrived, but for those that a limit lets wait."""
    bytes_per_s: Figure = 0.0
    start_s: Figure = 0.0
    """Time from the start of the search."""
    stage: _StageName = ""
    failing: tuple[str, ...] = ()
    """Targets whose I/Os failed meanwhile."""
    devices: Observed | None = None
    """What the devices below the targets did meanwhile; None if they were not sampled."""
    host_busy_pct: Figure | None = None

    def __hash__(self) -> int:
        return hash((self.start_s, self.rate, self.iops))

    def excess_of(self, limit: Limit) -> float:
        """Share of the I/Os over a limit; 1 where it was not counted."""
        return self.excess.get(limit.text, 1.0)

    def keeps(self, limit: Limit) -> bool:
        """Whether the trial is good (low-loss) for a limit."""
        return kept_by(limit)(self)


@functools.lru_cache(maxsize=64)
def kept_by(limit: Limit) -> Callable[[RateTrial], bool]:
    """Return what says whether a trial is good (low-loss) for a limit; for many trials, as texts take time."""
    text, allowed = limit.text, allowed_share(limit) + 1e-9
    return lambda trial: trial.is_sustained and trial.excess.get(text, 1.0) <= allowed


class Arrivals(Struct, frozen=True):
    """How many I/Os were due in a trial, and what became of those that did not complete."""

    rate: float
    duration_s: float
    skipped: int = 0
    errors: int = 0

    @property
    def due(self) -> float:
        """Arrivals expected."""
        return self.rate * self.duration_s

    @property
    def margin(self) -> float:
        """How far the number of arrivals may be off by chance."""
        return _DEVIATIONS * math.sqrt(max(self.due, 1.0))

    def is_carried_by(self, iops: float) -> bool:
        """Whether this many completions per second carried the rate."""
        ios = iops * self.duration_s
        return ios + self.margin >= SUSTAINED * self.due and (ios > 0 or self.due < _FEW)

    def unserved(self, ios: int, limit_s: float) -> float:
        """Arrivals that must have waited for longer than a limit by the end: more than can wait within it."""
        waiting = self.due - ios - self.skipped - self.errors
        return max(waiting - self.margin - self.rate * min(limit_s, PATIENCE_S), 0.0)


def excess_share(limit: Limit, total: Measured, arrivals: Arrivals) -> float:
    """Share of the arrivals of a trial that exceeded a limit; for a mean, all or none.

    I/Os that were skipped, failed, or still wait although the limit is over have exceeded it.
    """
    if total.ios == 0:
        return float(arrivals.due >= _FEW or arrivals.skipped + arrivals.errors > 0)
    lost = arrivals.skipped + arrivals.errors + arrivals.unserved(total.ios, limit.limit_ns / 1e9)
    if limit.metric == "mean":
        mean_ns = (total.latency_sum_ns + lost * PATIENCE_S * 1e9) / (total.ios + lost)
        return float(mean_ns > limit.limit_ns)
    over = float(total.counts[middles_ns(total.buckets) > limit.limit_ns].sum())
    if limit.metric == "max" and (total.largest_ns or 0) > limit.limit_ns:
        over = max(over, 1.0)
    elif limit.metric == "max":
        over = 0.0
    return min((over + lost) / max(total.ios + lost, 1.0), 1.0)


RATE_TRIALS = trial_kind("lunscope.rate-trials/1", RateTrial)
