"""Differences of correlated series against simulated truth: coverage, verdicts, and peeking every second."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.statistics.anytime import AnytimeDifference, mixture_variance
from engine.statistics.difference import DifferenceInterval, estimate, values_needed, welch_interval
from engine.statistics.percentile_difference import HistogramBlocks, percentile_difference, values_for
from engine.statistics.verdict import Better, Verdict, judge

Values = NDArray[np.float64]
RUNS = 200
PEEKED_S = 600


def ar1(seeds: range, count: int, correlation: float, noise: float) -> Values:
    """Steady series around 1000 whose neighbours resemble each other, a row for each seed."""
    drawn = np.stack([np.random.default_rng(seed).standard_normal(count + 100) for seed in seeds], axis=1)
    steps = drawn * math.sqrt(1 - correlation**2)
    values = np.zeros_like(steps)
    for index in range(1, len(values)):
        values[index] = correlation * values[index - 1] + steps[index]
    return np.asarray(1000 * (1 + noise * values[100:]), np.float64).T


def compared(a: Values, b: Values, confidence: float = 0.95) -> DifferenceInterval:
    sides = [estimate(values, np.ones(len(values))) for values in (a, b)]
    assert sides[0] is not None
    assert sides[1] is not None
    return welch_interval(sides[0], sides[1], confidence)


@pytest.mark.parametrize(("correlation", "count"), [(0.0, 30), (0.5, 60), (0.8, 100), (0.9, 300)])
def test_interval_of_two_halves_of_a_steady_run_holds_no_difference(correlation: float, count: int) -> None:
    wrong = 0
    for values in ar1(range(RUNS), 2 * count, correlation, 0.05):
        interval = compared(values[:count], values[count:])
        wrong += not interval.low <= 0 <= interval.high
    assert wrong <= 0.075 * RUNS  # 5 % and two standard errors more


def test_interval_without_correlation_is_that_of_welch() -> None:
    interval = compared(1000 + 10 * _alternating(40), 1100 + 20 * _alternating(40))
    assert interval.difference == pytest.approx(100)
    steady = compared(np.full(30, 5.0), np.full(30, 7.0))
    assert (steady.low, steady.difference, steady.high) == (2, 2, 2)


def _alternating(count: int) -> Values:
    return np.asarray(np.resize([1.0, -1.0], count), np.float64)


def test_weights_make_the_mean_of_an_io_of_the_means_of_intervals() -> None:
    values = np.tile([1.0, 10.0], 20)
    weights = np.tile([900.0, 100.0], 20)
    found = estimate(values, weights)
    assert found is not None
    assert found.mean == pytest.approx(1.9)
    assert found.squared_error == pytest.approx(0, abs=1e-12)


def test_values_without_weight_or_missing_do_not_count() -> None:
    values = np.concatenate((np.full(20, 3.0), [math.nan, 99.0]))
    weights = np.concatenate((np.ones(21), [0.0]))
    found = estimate(values, weights)
    assert found is not None
    assert found.mean == 3
    assert estimate(values[1:], weights[1:]) is None


@pytest.mark.parametrize(
    ("low", "high", "margin", "better", "expected"),
    [
        (-4, 4, 5, Better.LOWER, Verdict.EQUIVALENT),
        (6, 9, 5, Better.HIGHER, Verdict.BETTER),
        (6, 9, 5, Better.LOWER, Verdict.WORSE),
        (-9, -6, 5, Better.HIGHER, Verdict.WORSE),
        (-9, -6, 5, Better.LOWER, Verdict.BETTER),
        (6, 9, 5, Better.NEITHER, Verdict.DIFFERS),
        (4, 9, 5, Better.HIGHER, Verdict.UNDECIDED),
        (-9, 9, 5, Better.HIGHER, Verdict.UNDECIDED),
        (0, 0, 0, Better.LOWER, Verdict.EQUIVALENT),
        (0.1, 3, 0, Better.LOWER, Verdict.WORSE),
    ],
)
def test_verdict_needs_the_whole_interval(
    low: float, high: float, margin: float, better: Better, expected: Verdict
) -> None:
    assert judge(DifferenceInterval((low + high) / 2, low, high), margin, better) is expected


def test_values_needed_shrink_the_interval_to_where_it_decides() -> None:
    assert values_needed(DifferenceInterval(0, -10, 10), 5, 100) == 401
    assert values_needed(DifferenceInterval(20, 0, 40), 10, 100) == 401
    assert values_needed(DifferenceInterval(5, -5, 15), 5, 100) is None


@pytest.mark.slow
@pytest.mark.parametrize(("correlation", "runs", "most"), [(0.0, 100, 3), (0.5, 100, 3), (0.8, 200, 10)])
def test_two_halves_of_a_steady_run_are_equivalent_while_peeking_every_second_for_ten_minutes(
    correlation: float, runs: int, most: int
) -> None:
    # Where 10 % are wrong, at most 3 of 100 are in 0.8 % of cases, as are at most 10 of 200.
    equivalent = different = 0
    for values in ar1(range(runs), 2 * PEEKED_S, correlation, 0.03):
        live, seen = AnytimeDifference(), set[Verdict]()
        interval: DifferenceInterval | None = None
        for a, b in zip(values[:PEEKED_S].tolist(), values[PEEKED_S:].tolist(), strict=True):
            live.add_a(a)
            live.add_b(b)
            before, interval = interval, live.interval
            if interval is not None and interval is not before:
                last = judge(interval, 50.0, Better.NEITHER)
                seen.add(judge(interval, 0.0, Better.NEITHER))
        different += Verdict.DIFFERS in seen  # of any size, at any second
        equivalent += last is Verdict.EQUIVALENT
    assert equivalent >= runs - most
    assert different <= most


@pytest.mark.slow
def test_peeking_at_fixed_intervals_is_what_goes_wrong_and_a_real_difference_is_found() -> None:
    fooled = found = 0
    for values in ar1(range(50), 2 * PEEKED_S, 0.0, 0.03):
        a, b = values[:PEEKED_S], values[PEEKED_S:]
        fooled += any(
            judge(compared(a[:seconds], b[:seconds]), 0.0, Better.NEITHER) is Verdict.DIFFERS
            for seconds in range(30, PEEKED_S, 10)
        )
        live = AnytimeDifference()
        for one, other in zip(a, 1.05 * b, strict=True):
            live.add_a(one)
            live.add_b(other)
        assert live.interval is not None
        found += judge(live.interval, 20.0, Better.HIGHER) is Verdict.BETTER
    assert fooled >= 5
    assert found >= 48


def test_sequence_of_one_mean_is_the_formula_of_the_paper_and_needs_ten_batches() -> None:
    live = AnytimeDifference(length=2)
    for index in range(18):
        live.add_a(index % 4)
        live.add_b(7.0)
    assert (live.interval, live.means, live.values_missing) == (None, None, 2)
    for index in range(18, 22):
        live.add_a(index % 4)
        live.add_b(7.0)
    live.add_a(math.nan)
    live.add_b(1e9, weight=0)
    assert live.interval is not None
    # 11 means of 0.5 and 2.5 in turn; the constant side only adds what was paid to watch it.
    count, square = 11, mixture_variance(0.05, 30)
    variance = float(np.var([0.5, 2.5] * 5 + [0.5], ddof=1))
    scale = count * square + 1
    alone = math.sqrt(variance * 2 * scale / (count**2 * square) * math.log(math.sqrt(scale) / 0.05))
    assert live.interval.half_width > alone
    assert live.interval.half_width == pytest.approx(
        alone * math.sqrt(math.log(scale / 0.05) / math.log(math.sqrt(scale) / 0.05))
    )
    with pytest.raises(ValueError, match="between 0 and 1"):
        AnytimeDifference(confidence=1)


LOW, HIGH, BUCKETS = math.log(10), math.log(1e5), 800
EDGES = np.geomspace(10, 1e5, BUCKETS + 1)


def blocks(random: np.random.Generator, scale: float = 1.0, ios: int = 3000) -> HistogramBlocks:
    """Log-normal latencies of 20 stretches of time, each a little slower or faster as a whole."""
    slowness = np.log(scale * (1 + 0.03 * random.standard_normal((20, 1))))
    logarithms = 6 + 0.4 * random.standard_normal((20, ios)) + slowness
    at = ((logarithms - LOW) * (BUCKETS / (HIGH - LOW))).astype(np.intp)
    assert at.min() >= 0
    assert at.max() < BUCKETS
    counts = np.bincount((at + BUCKETS * np.arange(20)[:, None]).ravel(), minlength=20 * BUCKETS)
    return HistogramBlocks(EDGES[:-1], np.diff(EDGES), counts.reshape(20, BUCKETS).astype(np.float64))


@pytest.mark.slow
@pytest.mark.parametrize("percent", [50.0, 99.0, 99.9])
def test_interval_of_equal_percentiles_holds_no_difference(percent: float) -> None:
    wrong = 0
    for seed in range(100):
        random = np.random.default_rng(seed)
        interval = percentile_difference(blocks(random), blocks(random), percent, 0.95)
        assert interval is not None
        wrong += not interval.low <= 0 <= interval.high
    assert wrong <= 9  # 5 % and two standard errors more


def test_percentile_that_moved_is_found_and_its_size_too() -> None:
    random = np.random.default_rng(1)
    a, b = blocks(random), blocks(random, 1.3)
    interval = percentile_difference(a, b, 99, 0.95)
    assert interval is not None
    truth = math.exp(6 + 0.4 * 2.3263) * 0.3
    assert interval.low < truth < interval.high
    assert interval.low > 0.5 * truth
    assert percentile_difference(a, b, 99, 0.95) == interval


def test_percentile_of_one_bucket_is_as_certain_as_the_bucket_is_narrow() -> None:
    side = HistogramBlocks(np.array([100.0]), np.array([6.0]), np.full((20, 1), 500.0))
    interval = percentile_difference(side, side, 50, 0.95)
    assert interval is not None
    assert side.percentile(50) == 103
    assert interval.high == pytest.approx(1.96 * 6 / math.sqrt(6), rel=1e-3)


def test_percentile_with_too_few_values_has_no_interval() -> None:
    few = HistogramBlocks(np.array([100.0]), np.array([6.0]), np.full((20, 1), 49.0))
    assert percentile_difference(few, few, 99, 0.95) is None
    assert [values_for(percent) for percent in (50, 90, 99, 99.9)] == [20, 100, 1000, 10000]
    assert math.isnan(HistogramBlocks(np.zeros(0), np.zeros(0), np.zeros((20, 0))).percentile(50))
