"""A device of a known law in simulated time: every I/O of an open loop, so that there is chance as on a real device.

N servers, one queue (first come, first served), service times constant or exponential, a share of them slower.
"""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass, field

import numpy as np

from engine.rate_search.goal import allowed_share
from engine.rate_search.search import WantedTrial
from engine.rate_search.trial import PATIENCE_S, Arrivals, RateStage, RateTrial
from engine.sweep.limit import Limit

SLOTS = 128
_SETTLE_S = 0.3


@dataclass(frozen=True)
class Law:
    """How long I/Os take."""

    servers: int
    service_s: float
    is_exponential: bool = False
    slow_share: float = 0.0
    slow_factor: float = 1.0

    @property
    def maximum(self) -> float:
        """Throughput with all servers busy."""
        return self.servers / (self.service_s * (1 + self.slow_share * (self.slow_factor - 1)))


@dataclass
class LawDevice:
    """Measures trials; in a row at one rate, what waits at the end of one is still there in the next."""

    law: Law
    limits: tuple[Limit, ...]
    seed: int = 1
    stall_every_s: float = float("inf")
    stall_s: float = 0.0
    now_s: float = 0.0
    trials: list[RateTrial] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._free_s = [0.0] * self.law.servers
        self._outstanding: list[float] = []
        """Completions of the I/Os that have a slot."""
        self._arrived, self._completed = np.zeros(0), np.zeros(0)
        """I/Os of the trial before, which may end in this one."""
        self._next_stall_s = self._random.random() * min(self.stall_every_s, 1e9)

    def measure(self, wanted: WantedTrial) -> RateTrial:
        if not self.trials or self.trials[-1].rate != wanted.rate:
            self.now_s = max(self.now_s, *self._free_s)
        begin_s = self.now_s + _SETTLE_S
        end_s = begin_s + wanted.duration_s
        new_arrived, new_completed, skipped = self._drive(wanted.rate, end_s)
        arrived = np.concatenate((self._arrived, new_arrived))
        completed = np.concatenate((self._completed, new_completed))
        is_open = completed >= end_s
        self._arrived, self._completed = arrived[is_open], completed[is_open]
        in_time = (completed >= begin_s) & (completed < end_s)
        counted = in_time & (arrived >= begin_s)
        latencies = completed[counted] - arrived[counted]
        iops = float(in_time.sum()) / wanted.duration_s
        arrivals = Arrivals(wanted.rate, wanted.duration_s, int((skipped >= begin_s).sum()))
        trial = RateTrial(
            wanted.rate,
            wanted.duration_s,
            iops,
            ios=len(latencies),
            skipped=arrivals.skipped,
            latencies_ns={"mean": float(latencies.mean()) * 1e9} if len(latencies) else {},
            excess={limit.text: self._excess(limit, latencies, arrivals) for limit in self.limits},
            is_sustained=arrivals.is_carried_by(iops),
            start_s=begin_s,
            stage=wanted.stage.value,
        )
        self.now_s = end_s
        self.trials.append(trial)
        return trial

    def _drive(self, rate: float, end_s: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Arrivals, completions, and times of arrivals that found no slot, up to a time."""
        arrived, completed, skipped, arrival_s = list[float](), list[float](), list[float](), self.now_s
        while (arrival_s := arrival_s + self._random.expovariate(rate)) < end_s:
            start_s = arrival_s
            while self._outstanding and self._outstanding[0] <= start_s:
                heapq.heappop(self._outstanding)
            if len(self._outstanding) >= SLOTS:
                start_s = self._outstanding[0]
                if start_s - arrival_s > PATIENCE_S:
                    skipped.append(arrival_s)
                    continue
                heapq.heappop(self._outstanding)
            done_s = self._served(start_s)
            heapq.heappush(self._outstanding, done_s)
            arrived.append(arrival_s)
            completed.append(done_s)
        return np.array(arrived), np.array(completed), np.array(skipped)

    def _served(self, start_s: float) -> float:
        law, service_s = self.law, self.law.service_s
        if law.is_exponential:
            service_s = self._random.expovariate(1 / service_s)
        if law.slow_share and self._random.random() < law.slow_share:
            service_s *= law.slow_factor
        begin_s = max(heapq.heappop(self._free_s), start_s)
        while begin_s >= self._next_stall_s:
            begin_s = max(begin_s, self._next_stall_s + self.stall_s)
            self._next_stall_s += self.stall_every_s
        heapq.heappush(self._free_s, begin_s + service_s)
        return begin_s + service_s

    def _excess(self, limit: Limit, latencies_s: np.ndarray, arrivals: Arrivals) -> float:
        if not len(latencies_s):
            return 1.0
        lost = arrivals.skipped + arrivals.unserved(len(latencies_s), limit.limit_ns / 1e9)
        if limit.metric == "mean":
            mean_s = (latencies_s.sum() + lost * PATIENCE_S) / (len(latencies_s) + lost)
            return float(mean_s * 1e9 > limit.limit_ns)
        over = float((latencies_s * 1e9 > limit.limit_ns).sum())
        return min((over + lost) / (len(latencies_s) + lost), 1.0)


def true_excess(law: Law, limit: Limit, rate: float, ios: int = 30_000) -> float:
    """Share of very many I/Os over a limit, or their mean, as a multiple of what the limit allows."""
    trial = LawDevice(law, (limit,), seed=12345).measure(WantedTrial(rate, ios / rate, RateStage.STEP))
    if limit.metric == "mean":
        return trial.latencies_ns["mean"] / limit.limit_ns
    return trial.excess_of(limit) / allowed_share(limit)
