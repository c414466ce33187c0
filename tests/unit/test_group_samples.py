"""Busy, queue and service of ports from samples of all of their paths at once."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from collectors.model import Frame, HostFacts, Rows, Sample, Step, Tier, Topology
from collectors.rates import derive
from collectors.tables.block.averages import BlockAverages
from collectors.tables.block.schema import GROUP
from tests.unit.raw_samples import disks, raw_table, sample
from tests.unit.test_block_tables import WHO, did, key, topology

PORT = Rows(("p0",), ("p0",))


def sampled(count: int, busy: int, total: int, peak: int = 9) -> dict[str, int]:
    return {
        "driver_in_flight_sum": total,
        "driver_in_flight_samples": count,
        "driver_busy_samples": busy,
        "driver_in_flight_peak": peak,
    }


def samples(
    of: dict[str, dict[str, int]], seen: dict[str, int], about: Topology, who: Rows = PORT
) -> tuple[Sample, Sample]:
    before = disks(WHO, *({} for _ in WHO.names))
    after = disks(WHO, *(of.get(name, {}) for name in WHO.names))
    return (
        sample(1, disks=before, groups=raw_table(GROUP, who, [sampled(0, 0, 0)]), topology=about),
        sample(2, disks=after, groups=raw_table(GROUP, who, [seen]), topology=about),
    )


def frame(of: dict[str, dict[str, int]], seen: dict[str, int], about: Topology | None = None) -> Frame:
    return derive(*samples(of, seen, about or topology()))


LOAD = {"sd0h0": did(900, 2, 700), "sd1h0": did(100, 12, 500)}
"""1000 I/Os of 3 ms on port p0: 3 outstanding on average."""


def test_busy_of_a_port_is_the_union_that_was_seen() -> None:
    hbas = frame(LOAD, sampled(800, 600, 1600)).tables["hbas"]
    assert hbas.value("busy_pct", 0) == pytest.approx(75)
    assert hbas.tiers["busy_pct"].tolist() == [Tier.SAMPLED, Tier.KERNEL]
    assert (hbas.value("busy_low_pct", 0), hbas.value("busy_high_pct", 0)) == (70, 100)
    assert hbas.value("in_flight_peak", 0) == 9


def test_queue_and_service_of_a_port_follow_from_what_was_in_its_driver() -> None:
    hbas = frame(LOAD, sampled(800, 600, 1600)).tables["hbas"]
    # 2 in the driver at 1000 I/Os per second is a service time of 2 ms (Little's law).
    assert hbas.value("service_ms", 0) == pytest.approx(2.0)
    assert hbas.value("queue_ms", 0) == pytest.approx(1.0)
    assert hbas.value("service_ms", 0) + hbas.value("queue_ms", 0) == pytest.approx(hbas.value("await_ms", 0))


def test_too_few_samples_leave_the_range() -> None:
    hbas = frame(LOAD, sampled(99, 60, 160)).tables["hbas"]
    assert np.isnan(hbas.value("busy_pct", 0))
    assert hbas.tiers["busy_pct"][0] == Tier.NONE
    assert np.isnan(hbas.value("service_ms", 0))


def test_a_kernel_that_does_not_tell_the_driver_apart_gives_busy_but_no_split() -> None:
    about = topology()
    old = Topology(about.devices, HostFacts(kernel="4.18.0"), about.graph)
    hbas = frame(LOAD, sampled(800, 600, 1600), old).tables["hbas"]
    assert hbas.value("busy_pct", 0) == pytest.approx(75)
    assert np.isnan(hbas.value("service_ms", 0))


def test_a_group_seen_for_the_first_time_has_only_the_range() -> None:
    first, second = samples(LOAD, sampled(800, 600, 1600), topology())
    hbas = derive(sample(1, disks=first.tables["disk"], topology=topology()), second).tables["hbas"]
    assert np.isnan(hbas.value("busy_pct", 0))


def test_a_head_that_does_not_count_has_busy_and_service_by_samples() -> None:
    about = topology("nvme", uncounted=("dm-0",))
    both = {"sd0h0": did(300, 2, 400), "sd0h1": did(100, 10, 500)}
    head = Rows((key("dm-0"),), ("dm-0",))
    disks_ = derive(*samples(both, sampled(1000, 700, 1000), about, head)).tables["disks"]
    assert disks_.value("iops", 0) == 400
    assert disks_.value("busy_pct", 0) == pytest.approx(70)
    assert disks_.tiers["busy_pct"][0] == Tier.SAMPLED
    assert disks_.value("service_ms", 0) == pytest.approx(2.5)
    assert disks_.value("in_flight_peak", 0) == 9


def test_averages_of_a_report_add_samples_up() -> None:
    about = topology()
    moments = [({}, sampled(0, 0, 0)), (LOAD, sampled(800, 600, 1600)), (LOAD, sampled(1600, 600, 1600))]
    taken = [
        sample(
            at,
            disks=disks(WHO, *(of.get(name, {}) for name in WHO.names)),
            groups=raw_table(GROUP, PORT, [seen]),
            topology=about,
        )
        for at, (of, seen) in enumerate(moments, start=1)
    ]
    averages = BlockAverages()
    for previous, current in itertools.pairwise(taken):
        averages.add(Step(previous, current))
    hbas = averages.tables()["hbas"]
    assert hbas.value("busy_pct", 0) == pytest.approx(37.5)
    assert hbas.value("iops", 0) == 500
    assert hbas.value("service_ms", 0) == pytest.approx(2.0)
