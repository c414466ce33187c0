"""Sweeps over devices of a known law in simulated time: knee, servers and limits, with the chance that I/Os have."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pytest

from engine.sweep.knee import Answer, Shape, answer
from engine.sweep.limit import Limit
from engine.sweep.plan import Search
from engine.sweep.trial import SearchStage, Trial
from tests.unit.rate_search.law_device import Law

LADDER = (1, 2, 4, 8, 16, 32, 64)
SECONDS = 4.0
SEEDS = 20


@dataclass
class ClosedDevice:
    """N servers: as many of them as there are I/Os outstanding are busy, each with I/Os of its own, one by one."""

    law: Law
    seed: int
    now_s: float = 0.0
    trials: list[Trial] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)

    def measure(self, load: int, stage: str) -> None:
        expected = min(load, self.law.servers) / self.law.service_s * SECONDS
        ios = int(self._random.poisson(expected)) if self.law.is_exponential else round(expected)
        latency_ns = load * SECONDS / ios * 1e9
        trial = Trial(
            load, load, ios / SECONDS, latency_ns, start_s=self.now_s, duration_s=SECONDS, ios=ios, stage=stage
        )
        self.now_s += SECONDS
        self.trials.append(trial)


def _swept(law: Law, seed: int, *limits: Limit) -> Answer:
    device, search = ClosedDevice(law, seed), Search(LADDER, seed=seed)
    for stage in SearchStage:
        for load in search.wanted(stage, device.trials):
            device.measure(load, stage)
    return answer(device.trials, limits)


@pytest.mark.parametrize("is_exponential", [False, True])
@pytest.mark.parametrize("servers", [1, 3, 8, 24])
def test_knee_and_servers_are_those_of_the_law(servers: int, *, is_exponential: bool) -> None:
    law = Law(servers, 0.002, is_exponential=is_exponential)
    said = 0
    for seed in range(SEEDS if is_exponential else 2):
        found = _swept(law, seed)
        assert found.highest is not None
        if servers == 1:
            assert found.shape is Shape.FLAT
            assert (found.highest.whole_load, found.highest_name) == (1, "load to use")
        else:
            assert found.shape is Shape.KNEE
            assert found.balance is not None
            assert abs(math.log2(found.balance.found / servers)) <= 0.5
            assert found.balance.low / 1.05 <= servers <= found.balance.high * 1.05
        assert 0.94 * law.maximum <= found.highest.at.iops <= 1.05 * law.maximum
        if found.servers is not None:
            said += 1
            assert found.servers.count == pytest.approx(servers, abs=max(0.1, servers / 8))
            assert found.servers.service_ns == pytest.approx(law.service_s * 1e9, rel=0.06)
    assert said >= 0.7 * SEEDS or not is_exponential


@pytest.mark.parametrize("servers", [3, 8, 24])
def test_load_within_a_limit_is_that_of_the_law(servers: int) -> None:
    """The mean is S up to N outstanding, and L S / N beyond: 3 S is reached at 3 N."""
    limit = Limit.parse("mean<=6ms")
    for seed in range(5):
        ((_, best),) = _swept(Law(servers, 0.002, is_exponential=True), seed, limit).within
        assert best is not None
        assert best.at.iops == pytest.approx(servers / 0.002, rel=0.06)
        assert best.whole_load <= 3 * servers * 1.1
        assert best.ios is not None
