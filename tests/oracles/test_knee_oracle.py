"""The knee against kneed, an implementation of Kneedle (Satopaa, Albrecht, Irwin and Raghavan, 2011).

Kneedle takes the point where a curve, scaled to a unit square, is farthest above its diagonal; ours is the load of the
highest throughput per latency (Kleinrock's power), read from a fitted curve. On a curve with a corner, linear in the
load, both are the corner. They part where
- the bend is soft: power is highest at D of X(N) = D N / (N + D - 1) / S, Kneedle follows the range of the axis;
- there is noise: Kneedle reads the measured points as they are, and takes one of them or none;
- there is no knee: Kneedle may name one, ours says flat or rising.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.sweep.knee import Answer, Shape, answer
from engine.sweep.trial import SearchStage
from tests import needs
from tests.unit.sweep.queue_model import Curve, ModelDevice, bend, corner, flat, rising

pytestmark = needs.kneed

EVERY_LOAD = tuple(range(1, 65))


def _both(curve: Curve, noise: float = 0.0, seed: int = 1) -> tuple[Answer, float | None]:
    """Our answer and Kneedle's load, from the same measurements at every load."""
    import kneed

    device = ModelDevice(curve, seed, noise=noise)
    trials = [device.measure(load, SearchStage.LADDER) for load in EVERY_LOAD]
    locator: Any = kneed.KneeLocator(
        [trial.load for trial in trials], [trial.iops for trial in trials], curve="concave", direction="increasing"
    )
    return answer(trials), None if locator.knee is None else float(locator.knee)


@pytest.mark.parametrize("depth", [4, 8, 16, 32])
def test_both_find_the_corner(depth: int) -> None:
    ours, kneedle = _both(corner(depth))
    assert kneedle == depth
    assert ours.balance is not None
    assert ours.balance.found == pytest.approx(kneedle, rel=0.06)
    assert ours.balance.low <= kneedle <= ours.balance.high


def test_noise_moves_kneedle_farther_than_the_fitted_knee() -> None:
    pairs = [_both(corner(16), noise=0.05, seed=seed) for seed in range(30)]
    ours = [np.log2(found.balance.found / 16) for found, _ in pairs if found.balance is not None]
    kneedle = [np.log2(load / 16) for _, load in pairs if load is not None]
    assert len(ours) == len(pairs)
    assert max(map(abs, ours)) <= 1
    assert np.median(np.abs(kneedle)) <= 1, "Kneedle is within a step of the ladder, too"
    assert np.std(ours) <= np.std(kneedle)


def test_soft_bends_are_distinguished_by_both() -> None:
    """Kneedle's knee of a hyperbola on 1..64 is sqrt(D (63 + D)) - D + 1: the slope there is the diagonal's."""
    for depth in (6, 12):
        ours, kneedle = _both(bend(depth))
        assert kneedle == pytest.approx(np.sqrt(depth * (63 + depth)) - depth + 1, abs=1)
        assert ours.balance is not None
        assert ours.balance.low <= depth - 1 <= ours.balance.high * 1.1
        assert kneedle is not None
        assert ours.balance.found < kneedle, "a soft knee on a long axis is farther out for Kneedle"


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning:kneed")
def test_where_throughput_does_not_bend_neither_has_a_knee() -> None:
    for curve, shape in ((flat, Shape.FLAT), (rising, Shape.RISING)):
        ours, kneedle = _both(curve)
        assert ours.shape is shape
        assert (ours.balance, kneedle) == (None, None)
