"""Intervals of the difference of percentiles against the bootstrap of arch, from single latencies instead of buckets.

Both draw whole blocks of time, as many as there are, and take quantiles of the replicates. Ours differs in that
- the quantiles are taken further out by what Student's t is wider for so few blocks (Hesterberg, 2015): with 20 blocks
  t(0.975, 19) sqrt(20 / 19) / 1.96 = 1.096 times as far from the median of a normal distribution;
- latencies are known by their bucket only, which adds the rounding within it: little with buckets of 1 %;
- blocks that resemble their neighbours are joined into 10. These are independent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.statistics.percentile_difference import HistogramBlocks, percentile_difference
from tests import needs

pytestmark = needs.arch

BLOCKS, IOS = 20, 1500
WIDER = 1.096
EDGES = np.geomspace(1.0, 1e6, 1400)


def _latencies(seed: int, mean_us: float) -> NDArray[np.float64]:
    """Latencies of each block; a moment that is slow is slow for all of its I/Os."""
    random = np.random.default_rng(seed)
    slowness = np.exp(0.1 * random.standard_normal(BLOCKS))
    return np.asarray(random.exponential(mean_us * slowness[:, None], (BLOCKS, IOS)), np.float64)


def _histograms(latencies: NDArray[np.float64]) -> HistogramBlocks:
    inside = np.clip(latencies, EDGES[0], EDGES[-1])
    counts = np.array([np.histogram(block, EDGES)[0] for block in inside], np.float64)
    return HistogramBlocks(EDGES[:-1], np.diff(EDGES), counts)


@pytest.mark.parametrize("percent", [50.0, 90.0, 99.0])
def test_interval_is_that_of_arch_widened_for_few_blocks(percent: float) -> None:
    from arch.bootstrap import IndependentSamplesBootstrap

    def difference(a: Any, b: Any) -> NDArray[np.float64]:
        return np.array([np.percentile(b, percent) - np.percentile(a, percent)])

    wider, apart = [], []
    for seed in range(12):
        a, b = _latencies(2 * seed, 1000.0), _latencies(2 * seed + 1, 1100.0)
        ours = percentile_difference(_histograms(a), _histograms(b), percent, 0.95)
        assert ours is not None
        bootstrap = IndependentSamplesBootstrap(a, b, seed=seed)
        low, high = bootstrap.conf_int(difference, reps=400, method="percentile")[:, 0]
        wider.append(2 * ours.half_width / (high - low))
        apart.append(abs(ours.low + ours.high - low - high) / (high - low))
        assert ours.difference == pytest.approx(float(difference(a, b)[0]), abs=0.05 * (high - low))
    assert np.median(wider) == pytest.approx(WIDER, rel=0.06)
    assert np.median(apart) < 0.15
