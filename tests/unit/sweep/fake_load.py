"""A load in simulated time: counters grow as a curve of the queue depth says, with noise, warm-up and failures."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.job.spec import JobSpec, Knobs
from engine.replacing import replace
from engine.results.measured import Measured
from engine.running.counter_reader import ERRORS, FAILING, OUTSTANDING_NS
from engine.running.status import LoadState, LoadStatus


class FakeLoad:
    """Offers what a sweep needs of LoadControl; `now_s` is the clock."""

    def __init__(self, throughput: Callable[[float], float], noise: float = 0.02, seed: int = 1) -> None:
        self.now_s = 100.0
        self.turns: list[Knobs] = []
        self.jobs: list[JobSpec] = []
        """Jobs that it began anew with."""
        self.warm_up_s = 0.0
        """How long throughput rises after each turn."""
        self.settling_s = 0.0
        """How long I/Os of before are outstanding when an epoch is parted: it counts from then on."""
        self.outlasting_s = 0.0
        """In a shorter epoch the slowest I/Os do not end: latencies are too low by the share that is missing of it."""
        self.peak_of_mean = 1.0
        """Average peak latency as a multiple of the mean."""
        self.fails_at_depth = 1 << 30
        self.driven = 2
        """Targets inside the stripe width."""
        self.ends_at_s = float("inf")
        self.refuses: dict[int, Exception] = {}
        self.gap_after_s = float("inf")
        self.on_wait: Callable[[], None] = lambda: None
        self._throughput, self._noise, self._random = throughput, noise, random.Random(seed)
        self._counters = np.zeros((2, 18), np.uint64)
        self._done = 0.0
        self._in_flight_s = 0.0
        """I/Os in flight, integrated over time."""
        self._turned_s = self._epoch_s = self.now_s
        self._epoch_ios = 0.0

    def clock(self) -> float:
        return self.now_s

    @property
    def status(self) -> LoadStatus:
        state = LoadState.FAILED if self.now_s >= self.ends_at_s else LoadState.RUNNING
        message = "load failed: every I/O failed" if state is LoadState.FAILED else ""
        return replace(LoadStatus(), state=state, targets=("disk a", "disk b"), message=message)

    def turn(self, knobs: Knobs) -> None:
        if knobs.queue_depth in self.refuses:
            raise self.refuses[knobs.queue_depth]
        self.turns.append(knobs)
        self._turned_s = self.now_s
        self.part_epoch()

    def begin_anew(self, job: JobSpec, knobs: Knobs, is_ended: Callable[[], bool]) -> None:
        assert not is_ended()
        self.jobs.append(job)
        self.turn(knobs)

    def part_epoch(self) -> None:
        self._epoch_s, self._epoch_ios = self.now_s + self.settling_s, self._done

    def wait(self, timeout_s: float) -> bool:
        self.on_wait()
        self.now_s += timeout_s
        if self.now_s > self.gap_after_s:
            self.now_s, self.gap_after_s = self.now_s + 60, float("inf")
        if timeout_s:
            self._in_flight_s += timeout_s * self.turns[-1].queue_depth
            self._done += timeout_s * self._rate() * (1 + self._noise * self._random.gauss(0, 1))
        if self.now_s <= self._epoch_s:
            self._epoch_ios = self._done
        return self.now_s >= self.ends_at_s

    def _rate(self) -> float:
        warm = min((self.now_s - self._turned_s) / self.warm_up_s, 1.0) if self.warm_up_s else 1.0
        return self._throughput(self.turns[-1].queue_depth) * (0.2 + 0.8 * warm)

    def peek(self) -> NDArray[np.uint64] | None:
        depth = self.turns[-1].queue_depth
        self._counters[0, 0] = int(self._done)
        self._counters[0, OUTSTANDING_NS] = int(self._in_flight_s * 1e9)
        failing = depth >= self.fails_at_depth
        self._counters[1, FAILING] = failing
        self._counters[1, ERRORS] += np.uint64(failing)
        return self._counters.copy()

    def last_epoch(self) -> Any:
        """Measure an epoch whose I/Os took what Little's law says."""
        ios, duration_s = int(self._done - self._epoch_ios), max(self.now_s - self._epoch_s, 0.0)
        latency_ns = int(self.turns[-1].queue_depth * duration_s / max(ios, 1) * 1e9)
        if duration_s < self.outlasting_s:
            latency_ns = int(latency_ns * duration_s / self.outlasting_s)
        seconds = int(duration_s + 1e-6)
        total = Measured(
            ios,
            4096 * ios,
            0,
            ios * latency_ns,
            latency_ns,
            latency_ns,
            round(latency_ns * self.peak_of_mean) * seconds,
            seconds,
            np.zeros(0, np.uint16),
            np.zeros(0, np.uint64),
        )
        split = SimpleNamespace(total=total)
        targets = tuple(SimpleNamespace(name=name, split=split) for name in self.status.targets[: self.driven])
        return SimpleNamespace(split=split, duration_s=duration_s, targets=targets, logical=None, cpu=None)
