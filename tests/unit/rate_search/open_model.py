"""An M/M/1 queue as trials of an open loop would see it: the share over a limit is known in closed form.

Sojourn times are exponential with the rate mu - lambda (mu: service rate), so P(T > t) = exp(-(mu - lambda) t).
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import NormalDist

from engine.rate_search.goal import allowed_share
from engine.rate_search.known import KnownTrials
from engine.rate_search.search import RateSearch, WantedTrial
from engine.rate_search.trial import RateTrial
from engine.sweep.limit import Limit

TURN_S = 0.35
"""What a trial costs besides its duration."""
SERVICE_RATE = 20_000.0


def true_rate(limit: Limit, noise: float = 0.0, stalled: float = 0.0, service_rate: float = SERVICE_RATE) -> float:
    """Highest rate at which all I/Os together keep a limit of a percentile; `stalled`: share of the time in stalls."""
    slowness = [math.exp(noise * NormalDist().inv_cdf((step + 0.5) / 500)) for step in range(500)] if noise else [1.0]
    allowed, time_s = allowed_share(limit), limit.limit_ns / 1e9
    low, high = 0.0, service_rate
    for _ in range(60):
        middle = (low + high) / 2
        over = statistics.fmean(math.exp(-(service_rate - middle) * time_s / each) for each in slowness)
        low, high = (middle, high) if stalled + (1 - stalled) * over <= allowed else (low, middle)
    return low


@dataclass
class OpenModel:
    """Measures rates, with what disturbs real devices."""

    limits: tuple[Limit, ...]
    seed: int = 1
    noise: float = 0.0
    """Relative standard deviation of the latencies of a whole trial."""
    stall_every_s: float = math.inf
    stall_s: float = 0.03
    service_rate: float = SERVICE_RATE
    now_s: float = 0.0
    trials: list[RateTrial] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._phase_s = self._random.random() * self.stall_every_s if math.isfinite(self.stall_every_s) else 0.0

    def measure(self, wanted: WantedTrial) -> RateTrial:
        start_s = self.now_s + TURN_S
        self.now_s = start_s + wanted.duration_s
        slowness = math.exp(self._random.gauss(0, self.noise)) if self.noise else 1.0
        delayed = min(self._stalled_s(start_s, self.now_s) / wanted.duration_s, 1.0)
        served = min(wanted.rate, self.service_rate) * (1 - delayed)
        trial = RateTrial(
            wanted.rate,
            wanted.duration_s,
            served,
            ios=int(served * wanted.duration_s),
            excess={
                limit.text: delayed + (1 - delayed) * self._excess(limit, wanted.rate, slowness)
                for limit in self.limits
            },
            is_sustained=served >= 0.95 * wanted.rate,
            start_s=start_s,
            stage=wanted.stage.value,
        )
        self.trials.append(trial)
        return trial

    def _excess(self, limit: Limit, rate: float, slowness: float) -> float:
        spare = self.service_rate - rate
        if spare <= 0:
            return 1.0
        time_s = limit.limit_ns / 1e9 / slowness
        return float(1 / spare > time_s) if limit.metric == "mean" else math.exp(-spare * time_s)

    def _stalled_s(self, start_s: float, end_s: float) -> float:
        """Seconds of a trial in which nothing is served; what arrives then is late."""
        if math.isinf(self.stall_every_s):
            return 0.0
        first = math.floor((start_s - self._phase_s) / self.stall_every_s)
        stalls = (self._phase_s + (first + step) * self.stall_every_s for step in range(3))
        return sum(max(min(stall + self.stall_s, end_s) - max(stall, start_s), 0.0) for stall in stalls)


def search_all(search: RateSearch, model: OpenModel) -> Sequence[RateTrial]:
    """Search until every limit is decided."""
    known = KnownTrials()
    while (wanted := search.next_trial(model.trials, known)) is not None:
        model.measure(wanted)
    return model.trials
