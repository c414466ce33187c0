"""Student t, MSER-5, batch means, stop rules and the scalability law, against published and simulated truth."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.statistics.batch_means import (
    ConfidenceInterval,
    Stop,
    StopRule,
    batch_interval,
    enough_ios,
    percentile_ranks,
    relative_spread,
)
from engine.statistics.student_t import central_share, t_quantile
from engine.statistics.warmup import Trend, cut_warm_up, trend_of
from engine.sweep.usl import fit_usl


@pytest.mark.parametrize(
    ("freedom", "expected"),
    [(1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (9, 2.2622), (10, 2.2281), (19, 2.0930), (1000, 1.9623)],
)
def test_quantiles_are_those_of_the_printed_tables(freedom: int, expected: float) -> None:
    assert t_quantile(0.95, freedom) == pytest.approx(expected, abs=1e-4)


def test_quantile_of_another_confidence_and_bad_arguments() -> None:
    assert t_quantile(0.99, 5) == pytest.approx(4.0321, abs=1e-4)
    assert central_share(0.0, 7) == 0
    with pytest.raises(ValueError, match="confidence"):
        t_quantile(1.0, 5)
    with pytest.raises(ValueError, match="freedom"):
        t_quantile(0.95, 0)


def _series(seed: int, count: int, noise: float) -> NDArray[np.float64]:
    return 1000 * (1 + noise * np.random.default_rng(seed).standard_normal(count))


def test_warm_up_that_rises_is_cut_where_it_ends() -> None:
    results = []
    for seed in range(50):
        values = _series(seed, 400, 0.05)
        values[:100] *= np.linspace(0.3, 1.0, 100)
        results.append(cut_warm_up(values))
    assert np.mean([each.is_settled for each in results]) >= 0.9
    assert all(each.trend is Trend.WARMING for each in results)
    assert 60 <= np.median([each.cut for each in results]) <= 110


def test_steady_series_keeps_nearly_all() -> None:
    results = [cut_warm_up(_series(seed, 400, 0.05)) for seed in range(100)]
    assert np.mean([each.is_settled for each in results]) >= 0.9
    assert np.median([each.cut for each in results]) <= 40
    assert all(each.trend is Trend.NONE for each in results if each.is_settled and each.cut >= 25)


def test_series_that_is_still_rising_or_falling_is_not_settled() -> None:
    rising = _series(1, 400, 0.01) * np.linspace(0.2, 1.0, 400)
    assert not cut_warm_up(rising).is_settled
    assert cut_warm_up(rising).trend is Trend.WARMING
    falling = cut_warm_up(rising[::-1])
    assert not falling.is_settled
    assert falling.trend is Trend.SLOWING


def test_too_few_values_are_not_settled() -> None:
    assert not cut_warm_up(np.ones(49)).is_settled
    assert cut_warm_up(np.ones(50)).is_settled


def test_trend_is_seen_where_there_is_one_and_hardly_ever_where_there_is_none() -> None:
    steady = [trend_of(_series(seed, 100, 0.3)) for seed in range(500)]
    assert sum(trend is not Trend.NONE for trend in steady) <= 5
    assert trend_of(_series(1, 100, 0.02) * np.linspace(0.9, 1.1, 100)) is Trend.WARMING
    assert trend_of(_series(1, 100, 0.02) * np.linspace(1.1, 0.9, 100)) is Trend.SLOWING
    assert trend_of(np.linspace(1.0, 1.04, 100)) is Trend.NONE
    assert trend_of(np.ones(19)) is Trend.NONE


def _correlated(seed: int, count: int, memory: float) -> NDArray[np.float64]:
    noise = np.random.default_rng(seed).standard_normal(count)
    values = np.empty(count)
    values[0] = noise[0]
    for index in range(1, count):
        values[index] = memory * values[index - 1] + noise[index]
    return 100 + values


@pytest.mark.parametrize("memory", [0.0, 0.5, 0.8])
def test_intervals_hold_the_true_mean_as_often_as_they_say(memory: float) -> None:
    intervals = [batch_interval(_correlated(seed, 2000, memory)) for seed in range(300)]
    held = [each is not None and each.low <= 100 <= each.high for each in intervals]
    assert 0.91 <= np.mean(held) <= 0.99


def test_few_values_have_no_interval() -> None:
    assert batch_interval(np.ones(19)) is None
    assert batch_interval(np.ones(20)) == ConfidenceInterval(1.0, 0.0)


def test_ios_that_percentiles_need_and_what_they_leave_open() -> None:
    assert (enough_ios(50), enough_ios(99), enough_ios(99.9)) == (200, 10_000, 100_000)
    ranks = percentile_ranks(10_000, 99)
    assert ranks is not None
    assert ranks == pytest.approx((98.805, 99.195), abs=1e-3)
    assert percentile_ranks(900, 99) is None


def test_measuring_stops_when_precise_noisy_or_out_of_time() -> None:
    rule, wide, narrow = StopRule(), ConfidenceInterval(100, 10), ConfidenceInterval(100, 1)
    assert rule.decide(narrow, 50_000, 2.0, []) is Stop.PRECISE
    assert rule.decide(narrow, 50_000, 0.5, []) is Stop.GO_ON
    assert rule.decide(narrow, 9_000, 2.0, []) is Stop.GO_ON
    assert rule.decide(None, 50_000, 2.0, []) is Stop.GO_ON
    assert rule.decide(wide, 50_000, 2.0, [0.3] * 15) is Stop.GO_ON
    assert rule.decide(wide, 50_000, 2.0, [0.3] * 16) is Stop.NOISY
    assert rule.decide(wide, 50_000, 2.0, list(np.linspace(0.6, 0.3, 16))) is Stop.GO_ON
    assert rule.decide(wide, 0, 15.0, []) is Stop.TIME
    assert rule.decide(narrow, 9_000, 2.99, []) is Stop.GO_ON
    assert rule.decide(narrow, 9_000, 3.0, []) is Stop.TIME
    assert rule.decide(wide, 9_000, 3.0, [0.3] * 15) is Stop.GO_ON
    assert rule.decide(wide, 9_000, 3.0, [0.3] * 16) is Stop.NOISY
    assert rule.decide(ConfidenceInterval(0, 0), 50_000, 2.0, [np.inf] * 16) is Stop.GO_ON


def test_relative_spread_of_what_has_none() -> None:
    assert relative_spread(np.array([1.0])) == np.inf
    assert relative_spread(np.zeros(5)) == np.inf
    assert relative_spread(np.array([90.0, 110.0])) == pytest.approx(0.1414, abs=1e-4)


LADDER = np.array([1.0, 2, 4, 8, 16, 32, 64, 128, 256])


@pytest.mark.parametrize(("sigma", "kappa"), [(0.05, 0.0), (0.02, 1e-4), (0.0, 0.0), (0.3, 1e-3), (0.0, 2e-4)])
def test_parameters_come_back_from_their_own_curve(sigma: float, kappa: float) -> None:
    curve = 900 * LADDER / (1 + sigma * (LADDER - 1) + kappa * LADDER * (LADDER - 1))
    fit = fit_usl(LADDER, curve)
    assert fit is not None
    assert fit.rate == pytest.approx(900, rel=1e-6)
    assert (fit.contention, fit.coherency) == pytest.approx((sigma, kappa), abs=1e-8)
    assert fit.error < 1e-6
    assert fit.r_squared == pytest.approx(1)
    assert np.allclose(fit.throughput(LADDER), curve)


def test_peak_is_where_the_curve_is_highest() -> None:
    curve = 900 * LADDER / (1 + 0.02 * (LADDER - 1) + 1e-3 * LADDER * (LADDER - 1))
    fit = fit_usl(LADDER, curve)
    assert fit is not None
    assert fit.peak_load is not None
    dense = np.linspace(1, 256, 100_000)
    assert fit.peak_load == pytest.approx(dense[np.argmax(fit.throughput(dense))], rel=1e-3)
    assert "falls beyond 31" in fit.words


def test_noise_is_in_the_fit_error_and_nothing_turns_negative() -> None:
    truth = 900 * LADDER / (1 + 0.05 * (LADDER - 1))
    errors = []
    for seed in range(100):
        loads = np.repeat(LADDER, 3)
        noise = 1 + 0.1 * np.random.default_rng(seed).standard_normal(len(loads))
        fit = fit_usl(loads, np.repeat(truth, 3) * noise)
        assert fit is not None
        assert min(fit.contention, fit.coherency) >= 0
        errors.append(fit.error)
    assert np.mean(errors) == pytest.approx(0.1, rel=0.15)


def test_too_few_loads_have_no_fit() -> None:
    assert fit_usl(np.array([1.0, 1, 2, 4]), np.array([1.0, 1, 2, 4])) is None
    assert fit_usl(LADDER, np.zeros(9)) is None
