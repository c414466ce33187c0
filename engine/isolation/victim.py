"""The load that is disturbed: its figures second by second, from the statistics of a running open loop."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from engine._native import HISTOGRAM_BUCKETS
from engine.errors import LunscopeError
from engine.results.histogram import merge, percentile_ns
from engine.running.counter_reader import SKIPPED
from engine.study.load import Load

READ_IOS = 0
"""Position in the raw table load."""
_SECOND_S = 1.0
_LONGEST_S = 2.0
"""A second that took longer is none: the process was stopped, or the machine."""
P99 = 99.0


class VictimSecond(Struct, frozen=True, eq=False):
    """I/Os that completed in one second."""

    duration_s: float
    ios: int
    skipped: int
    """Arrivals that found no free slot in time."""
    latency_sum_ns: int
    """Sum of the times from when they were due to their completion."""
    buckets: NDArray[np.uint16]
    counts: NDArray[np.uint64]

    @property
    def mean_ns(self) -> float | None:
        """Mean response time; None without I/Os."""
        return self.latency_sum_ns / self.ios if self.ios else None

    @property
    def p99_ns(self) -> float | None:
        """Response time that 99 % do not exceed; None with fewer than 100 I/Os."""
        return percentile_ns(self.buckets, self.counts, P99)


class _Totals(Struct, frozen=True, eq=False):
    """Statistics of an epoch up to a moment."""

    at_s: float
    epoch: int
    ios: int
    skipped: int
    latency_sum_ns: int
    cells: NDArray[np.int64]


class VictimMeter:
    """Reads what the victim measures; there may be any number of readers."""

    def __init__(self, load: Load, rest: Callable[[float], None]) -> None:
        """Take the load, and what lets time pass and raises where the point is to end."""
        self._load, self._rest = load, rest

    def seconds(
        self, count: int, check: Callable[[], None], show: Callable[[tuple[VictimSecond, ...]], None]
    ) -> tuple[VictimSecond, ...]:
        """Measure a number of seconds; `check` raises where the aggressor has ended, `show` takes those so far.

        One in which the process was stopped is left out.

        Raises:
            LunscopeError: the victim or the aggressor ended.
        """
        before = self._take()
        begun_s = before.at_s
        found: tuple[VictimSecond, ...] = ()
        for number in range(1, count + 1):
            self._rest(max(begun_s + number * _SECOND_S - time.monotonic(), 0.0))
            check()
            later = self._take()
            if later.epoch == before.epoch and later.at_s - before.at_s < _LONGEST_S:
                found = (*found, _second(before, later))
                show(found)
            before = later
        return found

    def _take(self) -> _Totals:
        at_s, counters, epoch = time.monotonic(), self._load.peek(), self._load.last_epoch()
        if counters is None or epoch is None or self._load.wait(0):
            raise LunscopeError(f"the victim ended: {self._load.status.message or 'no reason is known'}")
        total = epoch.split.total
        cells = np.zeros(HISTOGRAM_BUCKETS, np.int64)
        cells[total.buckets] = total.counts
        return _Totals(at_s, epoch.index, total.ios, int(counters[:, SKIPPED].sum()), total.latency_sum_ns, cells)


def _second(before: _Totals, later: _Totals) -> VictimSecond:
    cells = later.cells - before.cells
    filled = np.flatnonzero(cells > 0)
    return VictimSecond(
        later.at_s - before.at_s,
        later.ios - before.ios,
        later.skipped - before.skipped,
        later.latency_sum_ns - before.latency_sum_ns,
        filled.astype(np.uint16),
        cells[filled].astype(np.uint64),
    )


def pooled_p99_ns(seconds: tuple[VictimSecond, ...]) -> float | None:
    """Return the p99 of all I/Os of several seconds; None with fewer than 100."""
    if not seconds:
        return None
    buckets, counts = (np.concatenate([getattr(each, name) for each in seconds]) for name in ("buckets", "counts"))
    return percentile_ns(*merge(buckets, counts), P99)
