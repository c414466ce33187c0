"""Warm-up and intervals of a mean against kim-convergence, which has the same methods from the same papers.

Where the definitions differ:
- MSER-5 there tries every cut but the last few and rejects one beyond the middle, ours tries the first half only, and
  calls a cut beyond 40 % of the series not settled. A cut that both accept is the same.
- The interval of MSER-m there takes the standard deviation of the batches with n, ours with n - 1 degrees of freedom,
  and ours takes 20 or 10 long batches, not batches of 5: with their number the two are the same but for the root of
  19 / 20. With its batches of 5 a correlated series would seem to be known better than it is.
- The spectral method of Heidelberger and Welch (1981) and that of uncorrelated samples are other ways to the same
  interval: alike on average, not for one series.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.statistics.batch_means import BATCHES, CORRELATED, batch_interval, neighbours
from engine.statistics.warmup import cut_warm_up
from tests import needs

pytestmark = needs.kim_convergence

VALUES = 2000
MEAN = 100.0


def _noise(seed: int, count: int) -> NDArray[np.float64]:
    return 1000 * (1 + 0.05 * np.random.default_rng(seed).standard_normal(count))


def _correlated(seed: int, memory: float) -> NDArray[np.float64]:
    """Make an AR(1) series."""
    noise = np.random.default_rng(seed).standard_normal(VALUES)
    values = np.empty(VALUES)
    values[0] = noise[0]
    for index in range(1, VALUES):
        values[index] = memory * values[index - 1] + noise[index]
    return MEAN + values


@pytest.mark.parametrize("warm_up", [0, 60, 120])
def test_mser5_cuts_at_the_same_value(warm_up: int) -> None:
    from kim_convergence.ucl import mser_m

    accepted = 0
    for seed in range(100):
        values = _noise(seed, 400)
        values[:warm_up] *= np.linspace(0.3, 1.0, warm_up)
        valid, cut = mser_m(values, batch_size=5)
        if valid:
            accepted += 1
            assert cut_warm_up(values).cut == cut
    assert accepted >= 90


def test_interval_of_batch_means_is_the_same_but_for_a_degree_of_freedom() -> None:
    from kim_convergence.ucl import mser_m_ci

    compared = 0
    for seed in range(50):
        values = _correlated(seed, 0.5)
        if neighbours(values.reshape(BATCHES, -1).mean(axis=1)) > CORRELATED:
            continue  # ours takes fewer batches then
        compared += 1
        ours = batch_interval(values)
        low, high = mser_m_ci(values, confidence_coefficient=0.95, batch_size=VALUES // BATCHES)
        assert ours is not None
        assert (low + high) / 2 == pytest.approx(ours.mean)
        assert (high - low) / 2 == pytest.approx(ours.half_width * np.sqrt((BATCHES - 1) / BATCHES))
    assert compared >= 40


@pytest.mark.parametrize("method", ["heidelberger_welch_ci", "uncorrelated_samples_ci"])
@pytest.mark.parametrize("memory", [0.0, 0.5, 0.8])
def test_other_methods_give_intervals_as_long_and_as_often_right(method: str, memory: float) -> None:
    from kim_convergence import ucl

    ratios, ours_hold, theirs_hold = [], 0, 0
    interval: Any = getattr(ucl, method)
    for seed in range(100):
        values = _correlated(seed, memory)
        ours = batch_interval(values)
        assert ours is not None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            low, high = interval(values, confidence_coefficient=0.95)
        ratios.append(2 * ours.half_width / (high - low))
        ours_hold += ours.low <= MEAN <= ours.high
        theirs_hold += low <= MEAN <= high
    assert 0.85 <= np.median(ratios) <= 1.15
    assert ours_hold >= 89, "95 of 100 but for three standard deviations"
    assert abs(ours_hold - theirs_hold) <= 6
