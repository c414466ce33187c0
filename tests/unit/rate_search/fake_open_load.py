"""An open loop in simulated time: an M/M/1 queue whose epochs have the latencies of its closed form."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.job.spec import Knobs
from engine.replacing import replace
from engine.results.histogram import bucket_of, merge
from engine.results.measured import Measured, combine
from engine.running.counter_reader import ERRORS, FAILING, IOS, SKIPPED
from engine.running.status import LoadState, LoadStatus

_POINTS = 1000
"""Quantiles that stand for the I/Os of an epoch."""


class FakeOpenLoad:
    """Offers what a search needs of LoadControl; `now_s` is the clock."""

    def __init__(self, service_rate: float = 20_000.0) -> None:
        self.now_s = 100.0
        self.turns: list[Knobs] = []
        self.epochs = 0
        self.fails_above = math.inf
        """Rate from which the second target fails."""
        self.ends_at_s = math.inf
        self.gap_after_s = math.inf
        self.opens_late_s = 0.0
        """How much of an epoch passes before it measures."""
        self.on_wait: Callable[[], None] = lambda: None
        self._service_rate = service_rate
        self._epoch_s = self.now_s
        self._counters = np.zeros((2, 18), np.uint64)
        self._done = 0.0

    def clock(self) -> float:
        return self.now_s

    @property
    def status(self) -> LoadStatus:
        is_over = self.now_s >= self.ends_at_s
        state, message = (LoadState.FAILED, "load failed: gone") if is_over else (LoadState.RUNNING, "")
        return replace(LoadStatus(), state=state, targets=("disk a", "disk b"), message=message)

    def turn(self, knobs: Knobs) -> None:
        self.turns.append(knobs)
        self.part_epoch()

    def part_epoch(self) -> None:
        self._epoch_s = self.now_s
        self.epochs += 1

    def wait(self, timeout_s: float) -> bool:
        self.on_wait()
        self.now_s += timeout_s
        if self.now_s > self.gap_after_s:
            self.now_s, self.gap_after_s = self.now_s + 60, math.inf
        self._done += min(self._rate, self._service_rate) * timeout_s
        self._counters[0, IOS[0]] = int(self._done)
        overload = max(self._rate - self._service_rate, 0.0)
        self._counters[0, SKIPPED] += np.uint64(overload * timeout_s)
        return self.now_s >= self.ends_at_s

    @property
    def _rate(self) -> float:
        return self.turns[-1].rate_iops or 0.0

    def peek(self) -> NDArray[np.uint64] | None:
        is_failing = self._rate >= self.fails_above
        self._counters[1, FAILING] = is_failing
        self._counters[1, ERRORS] += np.uint64(1000 * is_failing)
        return self._counters.copy()

    def last_epoch(self) -> Any:
        duration_s = max(self.now_s - self._epoch_s - self.opens_late_s, 0.0)
        total = self._total(int(min(self._rate, self._service_rate) * duration_s))
        return SimpleNamespace(split=SimpleNamespace(total=total), logical=None, cpu=None, duration_s=duration_s)

    def _total(self, ios: int) -> Measured:
        spare = max(self._service_rate - self._rate, 1.0)
        shares = (np.arange(_POINTS) + 0.5) / _POINTS
        if not ios:
            return combine([])
        latencies = [int(-math.log1p(-share) / spare * 1e9) + 1 for share in shares]
        each = np.full(_POINTS, max(ios // _POINTS, 1), np.uint64)
        buckets, counts = merge(np.array([bucket_of(latency) for latency in latencies]), each)
        mean_ns = sum(latencies) // _POINTS
        return Measured(ios, 4096 * ios, 0, ios * mean_ns, latencies[0], latencies[-1], 0, 0, buckets, counts)
