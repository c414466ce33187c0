"""The rule of SNIA on series whose answer is known by hand, and decline against simulated noise: 200 series each."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.statistics.decline import BATCHES, decline_of, explained_by_fall, falling_fit
from engine.statistics.steady_state import SteadyRounds, steady_window
from tests.unit.statistics.test_difference import ar1

Values = NDArray[np.float64]
RUNS = 200


@pytest.mark.parametrize(
    ("values", "excursion", "slope", "is_steady"),
    [
        ((100, 100, 100, 100, 100), 0.0, 0.0, True),
        ((90, 110, 100, 90, 110), 0.2, 0.08, True),
        ((89, 110, 101, 90, 110), 0.21, 0.088, False),
        ((105, 102.5, 100, 97.5, 95), 0.1, -0.1, True),
        ((105.2, 102.6, 100, 97.4, 94.8), 0.104, -0.104, False),
        ((94.8, 97.4, 100, 102.6, 105.2), 0.104, 0.104, False),
        ((1e-9, 1e-9, 1e-9, 1e-9, 1e-9), 0.0, 0.0, True),
    ],
)
def test_excursion_and_slope_of_a_window(
    values: tuple[float, ...], excursion: float, slope: float, *, is_steady: bool
) -> None:
    found = steady_window(values)
    assert [found.excursion, found.slope] == pytest.approx([excursion, slope])
    assert found.is_steady is is_steady


@pytest.mark.parametrize("values", [(0.0,) * 5, (1.0, math.nan, 1.0, 1.0, 1.0)])
def test_nothing_done_is_not_steady(values: tuple[float, ...]) -> None:
    assert not steady_window(values).is_steady


def test_slope_is_that_of_numpy_and_scales_do_not_matter() -> None:
    random = np.random.default_rng(1)
    for _ in range(50):
        values = random.uniform(50, 150, 5)
        found = steady_window(tuple(values))
        assert found.slope == pytest.approx(4 * np.polyfit(range(5), values, 1)[0] / values.mean())
        scaled = steady_window(tuple(1e6 * values))
        assert [scaled.excursion, scaled.slope] == pytest.approx([found.excursion, found.slope])


def said(rounds: SteadyRounds) -> list[int | None]:
    return [rounds.state.rounds, rounds.state.steady_from, rounds.state.lost_at]


def test_rounds_say_when_it_was_reached_lost_and_reached_again() -> None:
    rounds = SteadyRounds()
    for value in (300, 200, 120, 100):
        rounds.add((value,))
        assert not rounds.state.is_checked
    rounds.add((100,))
    assert rounds.state.is_checked
    assert not rounds.state.is_steady
    for _ in range(3):
        rounds.add((100,))
    assert said(rounds) == [8, 8, None]  # 100 100 100 100 100
    rounds.add((100,))
    assert said(rounds) == [9, 8, None]
    rounds.add((50,))
    assert said(rounds) == [10, None, 10]
    for _ in range(4):
        rounds.add((50,))
    assert said(rounds) == [14, 14, 10]


@pytest.mark.parametrize(
    ("noise", "fall", "least", "most"),
    [(0.03, 0, 0.97, 1), (0.08, 0, 0.4, 0.6), (0.01, 0.02, 0.85, 0.95), (0.01, 0.03, 0, 0.03), (0.01, 0.05, 0, 0)],
)
def test_how_often_noise_and_falls_pass_as_steady(noise: float, fall: float, least: float, most: float) -> None:
    random = np.random.default_rng(1)
    series = (1000 * (1 - fall * np.arange(5)) * (1 + noise * random.standard_normal(5)) for _ in range(1000))
    assert least <= np.mean([steady_window(tuple(values)).is_steady for values in series]) <= most


def test_all_figures_must_be_steady_together() -> None:
    rounds = SteadyRounds()
    for number in range(5):
        rounds.add((100.0, 100.0 + 20 * number))
    assert [window.is_steady for window in rounds.state.windows] == [True, False]
    assert not rounds.state.is_steady


def test_falling_fit_pools_what_rises() -> None:
    fit = falling_fit(np.array([5.0, 3.0, 4.0, 1.0, 2.0, 3.0]))
    assert fit.tolist() == [5.0, 3.5, 3.5, 2.0, 2.0, 2.0]
    falling = np.array([9.0, 7.0, 7.0, 1.0])
    assert falling_fit(falling).tolist() == falling.tolist()
    assert explained_by_fall(falling) == 1
    assert explained_by_fall(np.full(4, 3.0)) == 0
    assert explained_by_fall(np.arange(20.0)) == 0


def batches(values: Values) -> list[float]:
    return [float(mean) for mean in values[: len(values) // BATCHES * BATCHES].reshape(BATCHES, -1).mean(axis=1)]


def _wave(seed: int, count: int) -> Values:
    """Collections of garbage: at 40 % of the speed for 9 of 30 s."""
    random = np.random.default_rng(seed)
    at_s = np.arange(count) + random.uniform(0, 30)
    return np.asarray(1000 * np.where(at_s % 30 < 9, 0.4, 1) * (1 + 0.05 * random.standard_normal(count)), np.float64)


def _stalls(seed: int, count: int) -> Values:
    random = np.random.default_rng(seed)
    values = 1000 * (1 + 0.03 * random.standard_normal(count)) * (random.random(count) > 0.05)
    return np.asarray(values, np.float64)


def _heavy(seed: int, count: int) -> Values:
    return np.asarray(np.random.default_rng(seed).lognormal(7, 0.5, count), np.float64)


def _each(model: Callable[[int, int], Values]) -> Callable[[range, int], Values]:
    return lambda seeds, count: np.stack([model(seed, count) for seed in seeds])


NOISE: list[tuple[str, Callable[[range, int], Values], float]] = [
    ("independent, 5 %", lambda seeds, count: ar1(seeds, count, 0, 0.05), 0.005),
    ("independent, 20 %", lambda seeds, count: ar1(seeds, count, 0, 0.2), 0.005),
    ("independent, 50 %", lambda seeds, count: ar1(seeds, count, 0, 0.5), 0.005),
    ("correlated 0.5, 20 %", lambda seeds, count: ar1(seeds, count, 0.5, 0.2), 0.005),
    ("correlated 0.8, 20 %", lambda seeds, count: ar1(seeds, count, 0.8, 0.2), 0.02),
    ("correlated 0.9, 20 %", lambda seeds, count: ar1(seeds, count, 0.9, 0.2), 0.05),
    ("waves", _each(_wave), 0.005),
    ("stalls", _each(_stalls), 0.005),
    ("heavy tail", _each(_heavy), 0.005),
]


@pytest.mark.parametrize("count", [120, 600])
@pytest.mark.parametrize(("model", "most_wrong"), [each[1:] for each in NOISE], ids=[each[0] for each in NOISE])
def test_noise_is_hardly_ever_a_decline(model: Callable[[range, int], Values], most_wrong: float, count: int) -> None:
    wrong = sum(decline_of(batches(values)) is not None for values in model(range(RUNS), count))
    assert wrong <= most_wrong * RUNS


SHAPES: list[tuple[str, Callable[[Values], Values]]] = [
    ("a line to 70 %", lambda share: 1 - 0.3 * share),
    ("a cliff early", lambda share: np.where(share < 0.1, 2.0, 1.0)),
    ("a cliff halfway to 60 %", lambda share: np.where(share < 0.5, 1.0, 0.6)),
    ("a cliff late", lambda share: np.where(share < 0.9, 1.0, 0.5)),
    ("a decay", lambda share: 1 + 2 * np.exp(-share / 0.2)),
]


@pytest.mark.parametrize("shape", [each[1] for each in SHAPES], ids=[each[0] for each in SHAPES])
@pytest.mark.parametrize(("correlation", "noise"), [(0.0, 0.05), (0.0, 0.1), (0.8, 0.05)])
def test_declines_are_found(shape: Callable[[Values], Values], correlation: float, noise: float) -> None:
    count = 300
    share = np.arange(count) / count
    found = [decline_of(batches(values * shape(share))) for values in ar1(range(RUNS), count, correlation, noise)]
    assert sum(each is not None for each in found) >= 0.99 * RUNS
    fifth = count // 5
    truth = 1 - shape(share)[-fifth:].mean() / shape(share)[:fifth].mean()
    shares = [each.share for each in found if each is not None]
    assert np.mean(shares) == pytest.approx(truth, abs=0.02)


def test_what_rises_or_is_not_whole_is_no_decline() -> None:
    assert decline_of([100.0 + number for number in range(BATCHES)]) is None
    assert decline_of([109.0 - number / 2 for number in range(BATCHES)]) is None  # 7 %
    assert decline_of([200.0 - 5 * number for number in range(BATCHES - 1)]) is None
    assert decline_of([200.0 - 5 * number for number in range(BATCHES - 1)] + [math.nan]) is None
    assert decline_of([0.0] * BATCHES) is None
