"""The load that is disturbed: its figures second by second, from the counters of a running open loop."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.errors import LunscopeError, StoppedError
from engine.results.histogram import merge, percentile_ns
from engine.running.control import LoadControl
from engine.running.counter_reader import SKIPPED

READ_IOS, _READ_LATENCY = 0, 2
"""Positions in the raw table load."""
_SECOND_S = 1.0
P99 = 99.0


@dataclass(frozen=True, slots=True, eq=False)
class VictimSecond:
    """I/Os that completed in one second."""

    duration_s: float
    ios: int
    skipped: int
    """Arrivals that found no free slot in time."""
    latency_sum_ns: int
    """From the time they were due to their completion."""
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


class VictimMeter:
    """Reads the counters of the victim, whose only reader it is."""

    def __init__(self, control: LoadControl, is_stopped: Callable[[float], bool]) -> None:
        self._control, self._is_stopped = control, is_stopped

    def seconds(self, count: int, check: Callable[[], None]) -> tuple[VictimSecond, ...]:
        """Measure so many seconds; `check` raises where the aggressor has ended.

        Raises:
            StoppedError: a signal came.
            LunscopeError: the victim or the aggressor ended.
        """
        values, _, begun_s = self._take()
        before_s = begun_s
        found = []
        for number in range(1, count + 1):
            self.rest(max(begun_s + number * _SECOND_S - time.monotonic(), 0.0))
            check()
            later, cells, now_s = self._take()
            found.append(_second(later - values, cells, now_s - before_s))
            values, before_s = later, now_s
        return tuple(found)

    def rest(self, duration_s: float) -> None:
        """Let time pass.

        Raises:
            StoppedError: a signal came.
        """
        if self._is_stopped(duration_s):
            raise StoppedError("stopped")

    def _take(self) -> tuple[NDArray[np.uint64], tuple[NDArray[np.uint16], NDArray[np.uint64]], float]:
        now_s, reading = time.monotonic(), self._control.reading()
        if reading is None or self._control.wait(0):
            raise LunscopeError(f"the victim ended: {self._control.status.message or 'no reason is known'}")
        _, _, buckets, counts = reading.cells
        return reading.values.copy(), merge(buckets, counts), now_s


def _second(
    delta: NDArray[np.uint64], cells: tuple[NDArray[np.uint16], NDArray[np.uint64]], duration_s: float
) -> VictimSecond:
    total = delta.sum(axis=0)
    return VictimSecond(
        duration_s, int(total[READ_IOS]), int(total[SKIPPED]), int(total[_READ_LATENCY]), cells[0], cells[1]
    )


def pooled_p99_ns(seconds: tuple[VictimSecond, ...]) -> float | None:
    """Return the p99 of all I/Os of several seconds; None with fewer than 100."""
    if not seconds:
        return None
    buckets, counts = (np.concatenate([getattr(each, name) for each in seconds]) for name in ("buckets", "counts"))
    return percentile_ns(*merge(buckets, counts), P99)
