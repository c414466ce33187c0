"""Which devices the sampler is sent to."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from collectors.model import MISSING, Rows, Table
from collectors.tables.block.inflight import IDLE_TICKS, MAX_WATCHED, InflightWatch
from collectors.tables.block.schema import DISK
from engine._native import InflightSampler
from tests.fake_kernel import FakeDisk, FakeKernel

_WEIGHTED = DISK.index("weighted_ms")
SAMPLED = [at for at, column in enumerate(DISK.columns) if column.id.startswith("driver_")]


class Disks:
    """A table whose devices do as much I/O as told before each tick."""

    def __init__(self, kernel: FakeKernel) -> None:
        self.rows = Rows(tuple(f"{name}#" for name in kernel.disks), tuple(kernel.disks))
        self.values = np.full((len(self.rows), len(DISK.columns)), MISSING, np.uint64)
        self.values[:, :17] = 0

    def tick(self, watch: InflightWatch, **io_ms: int) -> Table:
        for name, amount in io_ms.items():
            self.values[self.rows.names.index(name), _WEIGHTED] += np.uint64(amount)
        table = Table(DISK, self.rows, self.values.copy())
        watch.fill(table)
        return table


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    kernel = FakeKernel(tmp_path)
    kernel.add(*(FakeDisk(f"sd{letter}", minor=n) for n, letter in enumerate("abcdefgh")))
    kernel.add(FakeDisk("dm0", 252, attributes={"mq/0/nr_tags": None}))
    return kernel


@pytest.fixture
def watch(kernel: FakeKernel) -> InflightWatch:
    return InflightWatch(str(kernel.sysfs), InflightSampler(str(kernel.sysfs)))


def test_nothing_is_watched_while_nothing_happens(kernel: FakeKernel, watch: InflightWatch) -> None:
    disks = Disks(kernel)
    for _ in range(3):
        disks.tick(watch)
    assert watch.watched == frozenset()


def test_the_busiest_are_watched_and_bio_based_ones_never(kernel: FakeKernel, watch: InflightWatch) -> None:
    disks = Disks(kernel)
    disks.tick(watch)
    disks.tick(watch, sda=10, sdb=20, sdc=30, sdd=40, sde=50, dm0=1000)
    assert watch.watched == {"sdb", "sdc", "sdd", "sde"}
    assert len(watch.watched) == MAX_WATCHED


def test_a_newcomer_must_be_much_busier(kernel: FakeKernel, watch: InflightWatch) -> None:
    disks = Disks(kernel)
    disks.tick(watch)
    busy = {"sda": 40, "sdb": 40, "sdc": 40, "sdd": 40}
    disks.tick(watch, **busy)
    disks.tick(watch, **busy, sde=60)
    assert watch.watched == set(busy)
    disks.tick(watch, **busy, sde=100)
    assert "sde" in watch.watched


def test_an_idle_device_is_given_up_after_a_while(kernel: FakeKernel, watch: InflightWatch) -> None:
    disks = Disks(kernel)
    disks.tick(watch)
    disks.tick(watch, sda=10)
    for _ in range(IDLE_TICKS):
        assert watch.watched == {"sda"}
        disks.tick(watch)
    disks.tick(watch)
    assert watch.watched == frozenset()


def test_a_wrap_of_the_counter_is_activity_not_madness(kernel: FakeKernel, watch: InflightWatch) -> None:
    disks = Disks(kernel)
    disks.values[0, _WEIGHTED] = (1 << 32) - 5
    disks.tick(watch)
    disks.values[0, _WEIGHTED] = 5
    disks.tick(watch, sdb=100, sdc=100, sdd=100, sde=100)
    assert "sda" not in watch.watched


def test_only_watched_devices_have_sampler_columns(kernel: FakeKernel, watch: InflightWatch) -> None:
    disks = Disks(kernel)
    disks.tick(watch)
    disks.tick(watch, sda=10)
    table = disks.tick(watch, sda=10)
    assert (table.values[0, SAMPLED] != MISSING).all()
    assert (table.values[1:, SAMPLED] == MISSING).all()
    watch.close()


def test_a_watched_device_that_is_gone_is_let_go(kernel: FakeKernel, watch: InflightWatch) -> None:
    disks = Disks(kernel)
    disks.tick(watch)
    disks.tick(watch, sda=10)
    kernel.remove("sda")
    fewer = Disks(kernel)
    fewer.tick(watch)
    fewer.tick(watch, sdb=10)
    assert watch.watched == {"sdb"}


def test_devices_that_come_and_go_at_every_tick_do_not_blind_the_watch(
    kernel: FakeKernel, watch: InflightWatch
) -> None:
    disks = Disks(kernel)
    disks.tick(watch)
    keys, names = disks.rows.keys, disks.rows.names
    for turn in range(3):
        disks.rows = Rows((f"sdz#{turn}", *keys), ("sdz", *names))
        disks.values = np.vstack([np.zeros_like(disks.values[:1]), disks.values[-len(keys) :]])
        disks.tick(watch, sdb=20)
        assert watch.watched == {"sdb"}


def test_figures_begin_with_the_interval_after_the_first_io(kernel: FakeKernel, watch: InflightWatch) -> None:
    sampled = slice(DISK.index("driver_in_flight_sum"), DISK.index("driver_queued_sum") + 1)
    disks = Disks(kernel)
    before = disks.tick(watch)
    assert (before.values[0, sampled] == MISSING).all()
    begun = disks.tick(watch, sda=10)
    assert begun.values[0, sampled].tolist() == [0] * 8
    assert (begun.values[1, sampled] == MISSING).all()
    kernel_stat = Path(kernel.sysfs, "block", "sda", "stat")
    for _ in range(200):
        after = disks.tick(watch, sda=10)
        if after.values[0, DISK.index("driver_in_flight_samples")] > 20:
            break
        time.sleep(0.01)
    assert after.values[0, DISK.index("driver_in_flight_samples")] > 20
    assert (after.values[0, DISK.index("driver_accounted_sum")] == MISSING) == (not kernel_stat.exists())


@pytest.mark.parametrize("column", ["reads", "writes", "discards", "in_flight_now"])
def test_ios_of_less_than_a_millisecond_are_activity(kernel: FakeKernel, watch: InflightWatch, column: str) -> None:
    disks = Disks(kernel)
    disks.tick(watch)
    disks.values[2, DISK.index(column)] += np.uint64(1)
    disks.tick(watch)
    assert watch.watched == {"sdc"}
