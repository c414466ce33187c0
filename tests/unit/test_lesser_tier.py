"""A recording reported as a lesser tier would have had it."""

from __future__ import annotations

import math

import pytest

from collectors.model import Step, Tier
from collectors.rates import derive
from collectors.reports.report import with_tier
from tests.unit.raw_samples import NO_SAMPLES
from tests.unit.test_exact_derive import BUSY, CELLS, COUNTED, SDA
from tests.unit.traced_samples import traced_sample

SAMPLED = {"driver_in_flight_sum": 370, "driver_in_flight_samples": 1_000, "driver_busy_samples": 370}


def recorded() -> list[Step]:
    before = traced_sample(0, SDA, {}, disks=[NO_SAMPLES])
    after = traced_sample(1, SDA, BUSY, disks=[COUNTED | NO_SAMPLES | SAMPLED], cells=CELLS)
    return [Step(None, before), Step(before, after)]


@pytest.mark.parametrize(
    ("tier", "busy_pct", "has_service", "has_p99"),
    [(Tier.EXACT, 25.0, True, True), (Tier.SAMPLED, 37.0, True, False), (Tier.KERNEL, 90.0, False, False)],
)
def test_figures_are_those_of_the_tier(tier: Tier, busy_pct: float, has_service: bool, has_p99: bool) -> None:
    _, step = with_tier(recorded(), tier)
    disks = derive(step.previous, step.current).tables["disks"]
    assert disks.value("busy_pct", 0) == pytest.approx(busy_pct)
    assert Tier(int(disks.tiers["busy_pct"][0])) is tier
    assert math.isnan(disks.value("service_ms", 0)) is not has_service
    assert math.isnan(disks.value("p99_ms", 0)) is not has_p99


def test_the_host_is_shown_with_no_better_tier_than_it_had() -> None:
    steps = list(with_tier(recorded(), Tier.SAMPLED))
    assert {step.current.topology.host.tier for step in steps} == {Tier.KERNEL}
    assert steps[0].previous is None
