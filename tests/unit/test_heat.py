"""Heat is evidence, and the verdict says no more than its tier can."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.hotness import hotness, verdict
from collectors.model import Frame, Rows, Topology
from collectors.rates import derive
from tests.unit import raw_samples as raw

NAN = math.nan
SHARE = st.one_of(st.just(NAN), st.floats(0, 1e9))


def one(busy: float, in_flight: float, queue_ms: float, service_ms: float) -> float:
    return float(hotness(*(np.array([value]) for value in (busy, in_flight, queue_ms, service_ms, NAN)))[0])


def test_heat_by_hand() -> None:
    assert one(100, 8, 3, 1) == pytest.approx(100 * (0.4 + 0.3 * 0.75 + 0.3))
    assert one(50, 8, 0, 1) == pytest.approx(50 * 0.7)
    assert one(50, 8, NAN, NAN) == pytest.approx(50)
    assert one(0, 0, NAN, NAN) == 0.0
    assert math.isnan(one(NAN, 8, 3, 1))
    pair = hotness(np.array([50.0, 50.0]), np.array([3.0, 1.0]), np.full(2, NAN), np.full(2, NAN), np.full(2, NAN))
    assert pair.tolist() == pytest.approx([50 * 0.625 / 0.7, 50 * 0.475 / 0.7])


def test_a_stalled_disk_is_as_hot_as_can_be() -> None:
    busy, in_flight, unknown = np.full(2, 100.0), np.array([1.0, 9.0]), np.full(2, NAN)
    hot = hotness(busy, in_flight, unknown, unknown, np.array([2_000.0, 1_999.0]))
    assert hot.tolist() == pytest.approx([100.0, 100 * (0.4 + 0.3 * 0.9) / 0.7])


@given(busy=st.floats(0, 100), rows=st.lists(st.tuples(SHARE, SHARE, SHARE), min_size=1, max_size=4))
def test_heat_stays_within_its_scale(busy: float, rows: list[tuple[float, float, float]]) -> None:
    in_flight, queue_ms, service_ms = (np.array(column) for column in zip(*rows, strict=True))
    hot = hotness(np.full(len(rows), busy), in_flight, queue_ms, service_ms, np.full(len(rows), NAN))
    assert ((hot >= 0) & (hot <= 100.0000001)).all()


VDA = raw.rows("vda")


def frame_of(after: dict[str, int], topology: Topology | None = None, who: Rows = VDA) -> Frame:
    first = raw.sample(0, disks=raw.disks(who, {**raw.NO_SAMPLES, "in_flight_now": after.get("in_flight_now", 0)}))
    return derive(first, raw.sample(1, disks=raw.disks(who, after), topology=topology))


def said(after: dict[str, int], topology: Topology | None = None) -> str:
    return verdict(frame_of(after, topology), 0)


def deep(in_driver: int) -> dict[str, int]:
    """10,000 reads of 8 ms in a second, `in_driver` of 80 outstanding ones in the driver, 92 % of samples busy."""
    return {
        "reads": 10_000,
        "read_ms": 80_000,
        "busy_ms": 990,
        "driver_in_flight_sum": in_driver * 1_000,
        "driver_in_flight_samples": 1_000,
        "driver_busy_samples": 920,
        "driver_in_flight_peak": 40,
    }


def test_the_queue_is_named_when_most_of_the_await_is_queueing() -> None:
    assert said(deep(31)) == "vda: 92 % busy, about 61 % of await is queueing: the queue, not the disk, is slow"


def test_the_disk_is_named_when_most_of_the_await_is_its_own() -> None:
    assert said(deep(56)) == "vda: 92 % busy, about 30 % of await is queueing: mostly device service time, 5.60 ms"
    assert said(deep(79)) == "vda: 92 % busy, no queueing: 8.00 ms is device service time"


def test_kernel_counters_name_neither() -> None:
    assert said({"reads": 100, "read_ms": 800, "busy_ms": 280}) == (
        "vda: 28 % busy by kernel ticks, await 8.00 ms, queue/service split unavailable (kernel tier)"
    )
    assert said({"reads": 100, "busy_ms": 99_000}) == "vda: busy not known, too little I/O to time"
    stacked = raw.topology(VDA, bio_based=True)
    assert said({"reads": 100, "read_ms": 800, "busy_ms": 280}, stacked).endswith("look at the disks below it")


def test_what_is_not_hot() -> None:
    assert said({}) == "vda: idle"
    assert verdict(derive(None, raw.sample(0, disks=raw.disks(VDA, {}))), 0) == "vda: no figures for this interval"


def test_a_stall_and_blind_accounting_are_said() -> None:
    assert said({"in_flight_now": 32}) == "vda: stalled: 32 outstanding and none completed in 1.0 s"
    blind = raw.topology(VDA, iostats=False)
    assert said({}, blind) == "vda: its I/O is not counted: echo 1 > /sys/block/vda/queue/iostats"


def test_the_disk_that_carries_the_load_is_said() -> None:
    who = raw.rows("vda", "vdb")
    first = raw.sample(0, disks=raw.disks(who, {}, {}))
    moved = ({"reads": 100, "read_ms": 300, "busy_ms": 300}, {"reads": 100, "read_ms": 100, "busy_ms": 100})
    frame = derive(first, raw.sample(1, disks=raw.disks(who, *moved)))
    assert verdict(frame, 0).endswith("75 % of the I/O time of all disks")
    assert "all disks" not in verdict(frame, 1)


def test_a_hostile_name_is_shown_harmless() -> None:
    evil = Rows(("k",), ("\x1b[2Jvda\n",))
    assert verdict(frame_of({}, None, evil), 0) == r"\x1b[2Jvda\x0a: idle"
