"""Hit and miss bands of a cache: found where latencies and hit rate agree, and nowhere else."""

from __future__ import annotations

import math

import numpy as np
import pytest

from collectors.latency.cache_bands import cache_bands, cache_over, mean_hit_share
from collectors.latency.subjects import LatencySubject
from collectors.latency.ticks import LatencyTicks
from collectors.model import Device, Frame, FrameTable, Rows, Topology
from engine.replacing import replace
from tests.unit.latency_ticks import SERIES, tick, track

NONE = LatencySubject("sda", "trace", frozenset())


def ticks_of(latencies: list[float]) -> LatencyTicks:
    return track([tick(1.0, [(0, 0, round(each)) for each in latencies])]).view()


def spread(middle_ns: float, count: int, seed: int) -> list[float]:
    values = np.random.default_rng(seed).lognormal(math.log(middle_ns), 0.25, count)
    return [float(value) for value in values]


@pytest.mark.parametrize("seed", range(5))
def test_two_bands_that_agree_with_the_hit_rate(seed: int) -> None:
    both = ticks_of(spread(100_000, 800, seed) + spread(5_000_000, 200, seed + 100))
    bands = cache_bands(both, SERIES, 0.8)
    assert bands is not None
    assert bands.fast_share == pytest.approx(0.8, abs=0.02)
    assert bands.hit.low_ns < 100_000 < bands.hit.high_ns < bands.miss.low_ns < 5_000_000 < bands.miss.high_ns
    assert cache_bands(both, SERIES, 0.5) is None
    assert cache_bands(both, SERIES, math.nan) is None


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_one_band_is_never_split(share: float) -> None:
    for seed in range(20):
        assert cache_bands(ticks_of(spread(200_000, 1000, seed)), SERIES, share) is None


def test_few_ios_and_none_say_nothing() -> None:
    assert cache_bands(ticks_of(spread(1e5, 80, 1) + spread(5e6, 20, 2)), SERIES, 0.8) is None
    assert cache_bands(ticks_of([]), SERIES, 0.8) is None


def test_the_cache_over_a_device_or_a_load() -> None:
    devices = {"dm-3:254:3": Device("dm-3:254:3", "dm-3", "dm", 254, 3, friendly_name="db")}
    caches = FrameTable(Rows(("dm-cache|dm-3:254:3", "arc|"), ("dm-3 dm-cache", "arc")), {})
    load = FrameTable(Rows(("1 /dev/mapper/db", "2 /tmp/x"), ("/dev/mapper/db", "/tmp/x")), {})
    frame = Frame(0, 0, 1.0, {"caches": caches, "load": load}, Topology(devices))
    key = "dm-cache|dm-3:254:3"
    assert cache_over(frame, replace(NONE, keys=frozenset({"dm-3:254:3"}))) == key
    assert cache_over(frame, replace(NONE, keys=frozenset({"sda:8:0"}))) is None
    assert cache_over(frame, replace(NONE, keys=frozenset({"dm-3:254:3", "sda:8:0"}))) is None
    assert cache_over(frame, LatencySubject("load", "load", frozenset({"1 /dev/mapper/db"}))) == key
    assert cache_over(frame, LatencySubject("load", "load", frozenset({"2 /tmp/x"}))) is None
    assert cache_over(replace(frame, tables={}), NONE) is None


def test_the_mean_hit_rate_of_what_is_known() -> None:
    assert mean_hit_share({"hit_pct": np.array([np.nan, 80.0, 90.0])}, "hit_pct") == pytest.approx(0.85)
    assert math.isnan(mean_hit_share({"hit_pct": np.array([np.nan])}, "hit_pct"))
    assert math.isnan(mean_hit_share({}, "hit_pct"))
