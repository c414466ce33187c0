"""The law of equal servers: found where it holds, and not where it does not."""

from __future__ import annotations

import pytest

from engine.sweep.servers import fit_servers
from engine.sweep.trial import Trial
from tests.unit.sweep.queue_model import SERVICE_S, Curve, ModelDevice, bend, corner, flat, peak, rising

LOADS = (1, 2, 4, 8, 16, 32, 64)


def _trials(curve: Curve, noise: float = 0.0, seed: int = 1) -> list[Trial]:
    device = ModelDevice(curve, seed, noise=noise)
    return [device.measure(load, "ladder") for load in LOADS for _ in range(2)]


@pytest.mark.parametrize("count", [1, 3, 8, 24])
def test_servers_of_a_known_law_are_counted(count: int) -> None:
    found = fit_servers(_trials(corner(count)))
    assert found is not None
    assert found.count == count
    assert found.service_ns == pytest.approx(SERVICE_S * 1e9)
    assert found.deviation < 1e-9
    for seed in range(20):
        noisy = fit_servers(_trials(corner(count), noise=0.01, seed=seed))
        assert noisy is not None
        assert noisy.count == pytest.approx(count, abs=1)
        assert noisy.service_ns == pytest.approx(SERVICE_S * 1e9, rel=0.05)


@pytest.mark.parametrize("curve", [bend(24), peak(8, 0.5), rising, corner(100)])
def test_curves_of_another_law_are_not_called_servers(curve: Curve) -> None:
    assert fit_servers(_trials(curve)) is None


def test_service_time_that_depends_on_the_load_is_none() -> None:
    assert fit_servers(_trials(corner(8), noise=0.2)) is None
    assert fit_servers([Trial(load, load, 2000.0, 1e6) for load in (4, 8, 16, 32)]) is None
    assert fit_servers(_trials(flat)[:4]) is None


def test_words_name_the_law() -> None:
    found = fit_servers(_trials(corner(8)))
    assert found is not None
    assert found.words == "behaves like 8 servers of 0.5 ms: 16,000 IOPS with 8 or more outstanding, fit error 0.0 %"
