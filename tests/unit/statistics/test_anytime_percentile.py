"""Intervals of percentiles that are looked at again and again: rarely wrong at any time, and short in the end."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.statistics.anytime import anytime_percentile_difference, percentile_bounds
from engine.statistics.difference import inflation, inflations
from engine.statistics.percentile_difference import HistogramBlocks

EDGES = np.geomspace(0.1, 100.0, 400)
PER_BLOCK = 300
RUNS = 40
"""None of them may be wrong: where 10 % are, none is in 1.5 % of cases."""


def _counts(
    random: np.random.Generator, blocks: int, *, median: float = 1.0, wander: float = 0.0
) -> NDArray[np.float64]:
    """Log-normal latencies whose median moves slowly from block to block, as those of devices do."""
    drawn, drifts = random.standard_normal((blocks, 1 + PER_BLOCK)), [0.0]
    for step in drawn[:, 0].tolist():
        drifts.append(0.7 * drifts[-1] + wander * step)
    values = median * np.exp(np.array(drifts[1:])[:, None] + 0.5 * drawn[:, 1:])
    buckets = len(EDGES) + 1
    """One more on either side, for what is beyond the edges and left out."""
    at = np.searchsorted(EDGES, values, side="right") + np.arange(blocks)[:, None] * buckets
    counts = np.bincount(at.ravel(), minlength=blocks * buckets).reshape(blocks, buckets)
    return counts[:, 1:-1].astype(np.float64)


def _side(counts: NDArray[np.float64]) -> HistogramBlocks:
    return HistogramBlocks(EDGES[:-1], np.diff(EDGES), counts)


@pytest.mark.slow
@pytest.mark.parametrize(("percent", "wander"), [(50.0, 0.0), (99.0, 0.0), (50.0, 0.05), (99.0, 0.05)])
def test_equal_series_hardly_ever_differ_at_any_of_many_looks(percent: float, wander: float) -> None:
    random = np.random.default_rng(7)
    for _ in range(RUNS):
        a, b = (_counts(random, 120, wander=wander) for _ in range(2))
        intervals = (
            anytime_percentile_difference(_side(a[:end]), _side(b[:end]), percent, 0.95) for end in range(20, 121, 5)
        )
        assert all(interval is None or interval.low <= 0 <= interval.high for interval in intervals)


def test_inflations_of_several_series_are_those_of_each() -> None:
    series = np.cumsum(np.random.default_rng(2).standard_normal((30, 5)), axis=0)
    assert inflations(series) == pytest.approx([inflation(column) for column in series.T])
    assert inflations(np.ones((30, 2))).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("percent", [50.0, 99.0])
def test_a_shift_is_found_and_its_size_is_within(percent: float) -> None:
    random = np.random.default_rng(3)
    a, b = _side(_counts(random, 120)), _side(_counts(random, 120, median=1.4))
    found = anytime_percentile_difference(a, b, percent, 0.95)
    assert found is not None
    true = 0.4 * np.exp(0.5 * {50.0: 0.0, 99.0: 2.326}[percent])
    assert 0 < found.low < true < found.high < 3 * true


def test_bounds_hold_the_percentile_and_no_value_beyond_it_does_not_shorten_them() -> None:
    counts = np.zeros((20, len(EDGES) - 1))
    counts[:, 100] = 60
    low, high = percentile_bounds(_side(counts), 99.0, 0.025)
    assert low == EDGES[100]
    assert high >= EDGES[101]


def test_too_little_says_nothing() -> None:
    random = np.random.default_rng(1)
    few, many = _side(_counts(random, 19)), _side(_counts(random, 40))
    assert anytime_percentile_difference(few, many, 50.0, 0.95) is None
    sparse = _side(np.eye(30, len(EDGES) - 1))
    assert anytime_percentile_difference(sparse, many, 99.0, 0.95) is None
