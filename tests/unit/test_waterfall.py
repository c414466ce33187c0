"""Who owns the latency of the load: shares, words, and that no two I/Os are taken for one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from collectors.latency.load_ios import LoadIo, slow_load_ios
from collectors.latency.slow_ios import SlowIo, by_number, slow_ios
from collectors.latency.waterfall import Stage, match, matched, mean_waterfall
from collectors.model import MISSING, Device, Rows, Sample, Table, Topology
from collectors.tables.block.schema import SLOW_IO
from collectors.tables.load.schema import LOAD, SLOW_LOAD
from engine.replacing import replace

MS = 1_000_000
NAN = math.nan
KERNEL = SlowIo(
    time_ns=100 * MS, major=8, minor=0, device_key="sda", device="sda", operation="read", sector=8, size_bytes=4096,
    tag_wait_ns=1 * MS, queue_ns=6 * MS, service_ns=2 * MS, pid=7, command="load", cgroup=1,
)  # fmt: skip
OWN = LoadIo("load:1:0", "/dev/sda", "read", 4096, 4096, 90 * MS, 11 * MS, 8, 0)


def test_a_mean_is_divided_and_its_owner_named() -> None:
    waterfall = mean_waterfall(10 * MS, 0.5 * MS, 7.1 * MS, 2 * MS)
    assert waterfall is not None
    assert waterfall.total_ns == pytest.approx(10 * MS)
    assert waterfall.share(Stage.QUEUE) == pytest.approx(0.71)
    assert waterfall.share(Stage.OUTSIDE) == pytest.approx(0.04)
    assert waterfall.verdict() == "71 % waits in the scheduler"


def test_two_owners_are_named_where_neither_has_half() -> None:
    waterfall = mean_waterfall(10 * MS, 0, 4 * MS, 3.5 * MS)
    assert waterfall is not None
    assert waterfall.verdict().count("%") == 2


def test_a_wait_that_nobody_watched_is_no_part_and_no_zero() -> None:
    waterfall = mean_waterfall(10 * MS, NAN, 2 * MS, 3 * MS)
    assert waterfall is not None
    assert [stage for stage, _ in waterfall.parts] == [Stage.QUEUE, Stage.SERVICE, Stage.OUTSIDE]
    assert waterfall.share(Stage.OUTSIDE) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("latency", "queue", "service"), [(10, 8, 4), (NAN, 1, 1), (10, NAN, 1), (10, 1, NAN), (0, 0, 0)]
)
def test_what_cannot_be_of_the_same_ios_gives_no_mean(latency: float, queue: float, service: float) -> None:
    assert mean_waterfall(latency * MS, 0, queue * MS, service * MS) is None


def test_an_io_is_laid_beside_its_kernel_side() -> None:
    assert list(match([OWN], [KERNEL])) == [(0, 0)]
    one = matched(OWN, KERNEL)
    assert dict(one.waterfall.parts) == {
        Stage.SUBMIT: 1 * MS, Stage.TAG: 1 * MS, Stage.QUEUE: 6 * MS, Stage.SERVICE: 2 * MS, Stage.REAP: 1 * MS,
    }  # fmt: skip
    assert one.waterfall.total_ns == OWN.latency_ns


@pytest.mark.parametrize(
    "other",
    [
        replace(KERNEL, minor=1),
        replace(KERNEL, operation="write"),
        replace(KERNEL, size_bytes=8192),
        replace(KERNEL, time_ns=102 * MS),
        replace(KERNEL, time_ns=98 * MS),
    ],
    ids=["device", "direction", "size", "ends later", "began before"],
)
def test_what_does_not_fit_is_not_matched(other: SlowIo) -> None:
    assert not list(match([OWN], [other]))


def test_of_several_that_fit_only_the_one_at_the_same_place_will_do() -> None:
    elsewhere = replace(KERNEL, sector=99)
    assert list(match([OWN], [elsewhere, KERNEL])) == [(0, 1)]
    assert not list(match([OWN], [elsewhere, replace(elsewhere, sector=100)]))
    assert len(list(match([OWN], [elsewhere]))) == 1
    assert len(list(match([OWN, replace(OWN, offset=5)], [KERNEL]))) == 1


# reading samples


def _sample(**tables: Table) -> Sample:
    device = Device("sda#1", "sda", "disk", 8, 0)
    return Sample(5_000 * MS, 1_000 * MS, Topology({device.key: device}), tables)


def _slow_table(**values: int) -> Table:
    raw = np.full((1, len(SLOW_IO.columns)), MISSING, np.uint64)
    for column, value in values.items():
        raw[0, SLOW_IO.index(column)] = value
    return Table(SLOW_IO, Rows(("0",), ("0",)), raw)


def test_slow_ios_are_read_with_what_is_missing_missing() -> None:
    low, high = (int.from_bytes(part, "little") for part in (b"post\x1b[31", b"m\0\0\0\0\0\0\0"))
    table = _slow_table(
        completed_ns=900 * MS, major=8, minor=0, operation=1, sector=77, bytes=512, service_ns=3 * MS, pid=12,
        command_low=low, command_high=high,
    )  # fmt: skip
    sample = _sample(slow_io=table)
    (found,) = slow_ios(sample, by_number(sample.topology.devices))
    assert (found.time_ns, found.device_key, found.operation) == (4_900 * MS, "sda#1", "write")
    assert (found.tag_wait_ns, found.queue_ns, found.cgroup) == (None, None, None)
    assert found.latency_ns == 3 * MS
    assert found.command == "post\\x1b[31m"


def test_a_device_that_is_not_known_keeps_its_number() -> None:
    (found,) = slow_ios(_sample(slow_io=_slow_table(completed_ns=0, major=253, minor=9, operation=2)), {})
    assert (found.device, found.device_key, found.operation) == ("253:9", "", "flush")


def test_slow_ios_of_the_load_are_read() -> None:
    load = Table(LOAD, Rows(("load:1:0",), ("/dev/sda",)), np.zeros((1, len(LOAD.columns)), np.uint64))
    values = np.array([[0, 1, 8192, 4096, 700 * MS, 20 * MS, 8, 0], [9, 0, 0, 0, 0, 0, 0, 0]], np.uint64)
    table = Table(SLOW_LOAD, Rows(("0", "1"), ("0", "1")), values)
    expected = LoadIo("load:1:0", "/dev/sda", "write", 8192, 4096, 4_700 * MS, 20 * MS, 8, 0)
    assert list(slow_load_ios(_sample(load=load, slow_load=table))) == [expected]
    assert not slow_load_ios(_sample(load=load))
