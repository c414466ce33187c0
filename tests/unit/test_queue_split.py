"""Queue, service and busy time from two counts of I/Os in flight: biased samples do no harm, or are left out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from collectors.model import FrameTable, HostFacts, Tier, Topology
from collectors.rates import derive
from collectors.tables.block.schema import DISK
from tests.unit import raw_samples as raw

VDA = raw.rows("vda")
SAMPLED = [column.id for column in DISK.columns if column.id.startswith("driver_")]
SAMPLES = 1_000


def one_second(
    ios: int, io_ms: float, busy: int, accounted_busy: int, at_once: float = 1.0, *, in_driver: float = 1.0,
    queued: float = 0.0, spread: float = 0.0, kernel: str = "6.18.5", now: int = 0, unbroken_us: int = 500_000,
) -> FrameTable:  # fmt: skip
    """A second of reads that took `io_ms` each.

    Args:
        ios: how many.
        io_ms: time of each, as the kernel adds it up.
        busy: samples of 1,000 that saw a request in the driver.
        accounted_busy: samples that saw an I/O in flight.
        at_once: mean I/Os in flight in those.
        in_driver: share of these that was in the driver.
        queued: share of these that waited for a full driver.
        spread: standard deviation of the mean of I/Os in flight, as a share of it.
        kernel: release.
        now: I/Os in flight at the end.
        unbroken_us: for how long there had been any, if there are.
    """
    accounted = accounted_busy * at_once
    seen = {
        "driver_in_flight_sum": round(accounted * in_driver),
        "driver_in_flight_samples": SAMPLES,
        "driver_busy_samples": busy,
        "driver_in_flight_peak": round(2 * at_once),
        "driver_accounted_sum": round(accounted),
        "driver_accounted_samples": accounted_busy,
        "driver_accounted_squares": round(accounted * at_once * (1 + spread**2)),
        "driver_queued_sum": round(accounted * queued),
        "driver_unbroken_us": unbroken_us if now else 0,
    }
    before = raw.disks(VDA, dict.fromkeys(SAMPLED, 0))
    after = raw.disks(VDA, {"reads": ios, "read_ms": round(ios * io_ms), "busy_ms": 77, "in_flight_now": now, **seen})
    topology = Topology(host=HostFacts(kernel=kernel))
    return derive(raw.sample(0, disks=before, topology=topology), raw.sample(1, disks=after, topology=topology)).tables[
        "disks"
    ]


def figure(table: FrameTable, field: str) -> float:
    return table.value(field, 0)


@pytest.mark.parametrize("seen", [70, 100, 200])
def test_samples_that_saw_too_much_or_too_little_do_not_change_busy_of_single_ios(seen: int) -> None:
    table = one_second(1_000, 0.1, busy=seen, accounted_busy=seen)
    assert figure(table, "busy_pct") == pytest.approx(10.0)
    assert table.tiers["busy_pct"][0] == Tier.SAMPLED
    assert figure(table, "service_ms") == pytest.approx(0.1)
    assert figure(table, "queue_ms") == 0


def test_what_the_driver_had_done_a_little_before_is_taken_half_for_service() -> None:
    table = one_second(2_000, 0.1, busy=180, accounted_busy=200, in_driver=0.9)
    assert 0.09 < figure(table, "service_ms") < 0.1
    assert 18 < figure(table, "busy_pct") < 20


def test_bounds_too_far_apart_leave_figures_out() -> None:
    table = one_second(2_000, 0.1, busy=120, accounted_busy=200, in_driver=0.6)
    assert math.isnan(figure(table, "service_ms"))
    assert math.isnan(figure(table, "queue_ms"))
    assert table.tiers["service_ms"][0] == Tier.NONE
    assert figure(table, "busy_pct") == pytest.approx(7.7)
    assert table.tiers["busy_pct"][0] == Tier.KERNEL


def test_what_waits_for_a_full_driver_is_queue() -> None:
    table = one_second(10_000, 25.6, busy=1_000, accounted_busy=1_000, at_once=256, in_driver=1 / 3, queued=2 / 3)
    assert figure(table, "service_ms") == pytest.approx(25.6 / 3, rel=0.01)
    assert figure(table, "queue_ms") == pytest.approx(25.6 * 2 / 3, rel=0.01)
    assert figure(table, "busy_pct") == pytest.approx(100.0)


def test_busy_of_several_at_once_is_the_kernels_time_shared_by_how_many_there_were() -> None:
    table = one_second(2_000, 0.8, busy=210, accounted_busy=210, at_once=8, spread=0.3)
    assert figure(table, "busy_pct") == pytest.approx(20.0)
    assert table.tiers["busy_pct"][0] == Tier.SAMPLED


@pytest.mark.parametrize(("seen", "spread"), [(100, 0.3), (400, 0.3), (210, 2.0), (25, 0.0)])
def test_too_few_or_contradicting_samples_leave_busy_to_the_kernel(seen: int, spread: float) -> None:
    table = one_second(2_000, 0.8, busy=seen, accounted_busy=seen, at_once=8, spread=spread)
    assert figure(table, "busy_pct") == pytest.approx(7.7)
    assert table.tiers["busy_pct"][0] == Tier.KERNEL


def test_a_long_io_that_is_still_in_flight_needs_samples_that_agree() -> None:
    table = one_second(2_000, 0.1, busy=400, accounted_busy=400, now=1)
    assert table.tiers["busy_pct"][0] == Tier.KERNEL
    short = one_second(2_000, 0.1, busy=400, accounted_busy=400, now=1, unbroken_us=3_000)
    assert figure(short, "busy_pct") == pytest.approx(20.0)
    agreed = one_second(2_000, 0.1, busy=210, accounted_busy=210, now=1)
    assert figure(agreed, "busy_pct") == pytest.approx(20.0)


def test_a_stall_without_completions_is_seen_by_samples_alone() -> None:
    table = one_second(0, 0, busy=1_000, accounted_busy=1_000, now=1)
    assert figure(table, "busy_pct") == pytest.approx(100.0)
    assert math.isnan(figure(table, "service_ms"))


@pytest.mark.parametrize("kernel", ["5.14.0-427.el9.x86_64", "6.1.0-18-amd64"])
def test_kernels_that_account_what_the_driver_has_leave_the_queue_to_littles_law(kernel: str) -> None:
    table = one_second(10_000, 25.6, busy=1_000, accounted_busy=1_000, at_once=85, kernel=kernel)
    assert figure(table, "service_ms") == pytest.approx(8.5)
    assert figure(table, "queue_ms") == pytest.approx(25.6 - 8.5)
    assert figure(table, "busy_pct") == pytest.approx(100.0)


@pytest.mark.parametrize("kernel", ["5.14.0-427.el9.x86_64", "6.1.0-18-amd64"])
def test_where_they_agree_with_the_kernel_they_are_judged_by_it(kernel: str) -> None:
    table = one_second(2_000, 0.1, busy=210, accounted_busy=210, kernel=kernel)
    assert figure(table, "busy_pct") == pytest.approx(20.0)


def test_ios_shorter_than_a_sample_are_left_to_the_kernel() -> None:
    table = one_second(2_000, 0.09, busy=180, accounted_busy=180)
    assert table.tiers["busy_pct"][0] == Tier.KERNEL
    assert figure(table, "service_ms") == pytest.approx(0.09)
    assert math.isnan(figure(one_second(2_000, 0.04, busy=80, accounted_busy=80), "service_ms"))


def test_longer_times_add_the_sums_up_not_the_figures() -> None:
    samples = [raw.sample(0, disks=raw.disks(VDA, dict.fromkeys(SAMPLED, 0)))]
    for at_s in (1, 2):
        single = dict(zip(SAMPLED, [120, 1_000, 120, 1, 120, 120, 120, 0, 0], strict=True))
        values = {name: value * at_s for name, value in single.items()}
        samples.append(raw.sample(at_s, disks=raw.disks(VDA, {"reads": at_s * 1_000, "read_ms": at_s * 100, **values})))
    table = derive(samples[0], samples[2]).tables["disks"]
    assert table.value("busy_pct", 0) == pytest.approx(10.0)
    assert np.isfinite(table.value("service_ms", 0))


def test_a_disk_has_the_same_figures_beside_idle_and_unsampled_ones_as_alone() -> None:
    single = {"driver_in_flight_sum": 100, "driver_in_flight_samples": SAMPLES, "driver_busy_samples": 100,
              "driver_in_flight_peak": 1, "driver_accounted_sum": 100, "driver_accounted_samples": 100,
              "driver_accounted_squares": 100}  # fmt: skip
    states = {
        "vda": {"reads": 1_000, "read_ms": 100, "busy_ms": 90, **single},
        "vdb": {"driver_in_flight_samples": SAMPLES},
        "vdc": {"reads": 500, "read_ms": 400, "busy_ms": 300},
        "vdd": {"reads": 1, "driver_in_flight_samples": SAMPLES, "driver_busy_samples": 3, "driver_in_flight_sum": 3},
        "vde": {"in_flight_now": 4, **single},
        "vdf": {"reads": 2_000, "read_ms": 200, "busy_ms": 180, **single},
    }
    zero = dict.fromkeys(SAMPLED, 0)

    def tables(*names: str) -> FrameTable:
        rows = raw.rows(*names)
        first = raw.disks(rows, *[zero] * len(names))
        second = raw.disks(rows, *[zero | states[name] for name in names])
        return derive(raw.sample(0, disks=first), raw.sample(1, disks=second)).tables["disks"]

    together = tables(*states)
    assert np.isfinite(together.columns["service_ms"]).tolist() == [True, False, False, False, False, True]
    for row, name in enumerate(states):
        alone = tables(name)
        for field in ("queue_ms", "service_ms", "busy_pct", "in_flight_peak"):
            assert together.value(field, row) == pytest.approx(alone.value(field, 0), nan_ok=True), (name, field)
            assert together.tiers[field][row] == alone.tiers[field][0], (name, field)
