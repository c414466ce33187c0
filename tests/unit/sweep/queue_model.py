"""A device with a known knee, as one measurement after another would see it: statistics, not single I/Os."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from engine.sweep.knee import Answer, answer
from engine.sweep.plan import Search
from engine.sweep.trial import SearchStage, Trial

SERVICE_S = 0.0005
TRIAL_S = 4.0

Curve = Callable[[float], float]
"""Throughput at a load, by law."""


def corner(depth: float) -> Curve:
    """X(N) = min(N, D) / S: a device that serves D at a time, each in S; R = max(S, N S / D). The knee is at D."""
    return lambda load: min(load, depth) / SERVICE_S


def bend(depth: float) -> Curve:
    """X(N) = D N / (N + D - 1) / S: D stations with exponential service, balanced. Power is highest near D."""
    return lambda load: depth * load / (load + depth - 1) / SERVICE_S


def peak(depth: float, slope: float) -> Curve:
    """Rises as `corner` and falls beyond its knee."""
    return lambda load: min(load, depth) / SERVICE_S * min(1.0, (depth / load) ** slope)


def falling(slope: float) -> Curve:
    """Is best at load 1, as a rotating disk with several sequential streams."""
    return lambda load: load**-slope / SERVICE_S


def flat(_load: float) -> float:
    """One server without any parallelism: more depth only waits."""
    return 1 / SERVICE_S


def rising(load: float) -> float:
    """Never saturates."""
    return load / SERVICE_S


@dataclass
class ModelDevice:
    """Measures loads of a curve, with what disturbs real devices."""

    curve: Curve
    seed: int
    noise: float = 0.0
    """Relative standard deviation of the throughput of a whole measurement."""
    stall_every_s: float = math.inf
    stall_s: float = 1.0
    drift: float = 0.0
    """Change of the highest throughput over two minutes, as a share of it; the service time alone stays."""
    now_s: float = 0.0
    trials: list[Trial] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._stall_phase_s = self._random.random() * self.stall_every_s if math.isfinite(self.stall_every_s) else 0.0

    def measure(self, load: float, stage: str) -> Trial:
        drifted = self.curve(load) * (1 + self.drift * self.now_s / 120)
        iops = min(drifted, load / SERVICE_S) * self._disturbance()
        trial = Trial(
            load=load,
            in_flight=load,
            iops=iops,
            latency_ns=load / iops * 1e9,
            latencies_ns={"p99": 3 * load / iops * 1e9},
            start_s=self.now_s,
            duration_s=TRIAL_S,
            stage=stage,
        )
        self.now_s += TRIAL_S
        self.trials.append(trial)
        return trial

    def _disturbance(self) -> float:
        factor = math.exp(self._random.gauss(0, self.noise)) if self.noise else 1.0
        return factor * (1 - self._stalled_s() / TRIAL_S)

    def _stalled_s(self) -> float:
        """Seconds of the coming measurement in which nothing is served."""
        if math.isinf(self.stall_every_s):
            return 0.0
        first = math.floor((self.now_s - self._stall_phase_s) / self.stall_every_s)
        starts = (self._stall_phase_s + (first + step) * self.stall_every_s for step in range(3))
        return sum(
            max(min(start + self.stall_s, self.now_s + TRIAL_S) - max(start, self.now_s), 0.0) for start in starts
        )


def sweep(device: ModelDevice, loads: Sequence[int], *, with_usl: bool = True) -> Answer:
    """Search a device as the runner does; hundreds of runs need no scalability law if nothing looks at it."""
    search = Search(tuple(loads), seed=device.seed)
    for stage in SearchStage:
        for load in search.wanted(stage, device.trials):
            device.measure(load, stage)
    return answer(device.trials, with_usl=with_usl)
