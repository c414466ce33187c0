"""The live source on fake trees and a clock that the test moves."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event as StopFlag
from typing import Any

import numpy as np
import pytest

from collectors.model import Sample, Tier
from collectors.sampling.reading import Reading
from collectors.sampling.schedule import SECOND_NS, SampleFlag, Schedule, SkipReporter
from collectors.sources.live import LiveSource
from collectors.topology.scanner import TopologyScanner
from engine.errors import LunscopeError, UsageError
from engine.events import EventKind
from tests.fake_kernel import FakeDisk, FakeKernel


class HandClock:
    """Time that passes only by waiting, or as the test says."""

    def __init__(self) -> None:
        self.now_ns = 1_000 * SECOND_NS

    def monotonic_ns(self) -> int:
        return self.now_ns

    def time_ns(self) -> int:
        return self.now_ns + 1_000_000 * SECOND_NS

    def wait(self, stop: StopFlag, seconds: float) -> bool:
        self.now_ns += round(seconds * SECOND_NS)
        return stop.is_set()


class FailingCollector:
    """Fails from its second reading to its fourth."""

    def __init__(self) -> None:
        self.reads = 0
        self.closed = 0

    def read(self) -> Reading:
        self.reads += 1
        if 2 <= self.reads <= 4:
            raise OSError(5, "Input/output error")
        return Reading()

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    kernel = FakeKernel(tmp_path)
    kernel.add(FakeDisk("sda", diskseq=3, attributes={"device/model": "M1\n"}))
    kernel.write_proc("sys/kernel/osrelease", "6.12.0\n")
    return kernel


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def source(kernel: FakeKernel, clock: HandClock) -> Iterator[LiveSource]:
    source = LiveSource(2.0, kernel.procfs, kernel.sysfs, "sampled", clock=clock)
    yield source
    source.close()


def take(source: LiveSource, count: int) -> list[Sample]:
    return [step.current for step in itertools.islice(source.steps(StopFlag()), count)]


def test_ticks_fall_on_a_grid_after_an_early_second_one(source: LiveSource) -> None:
    samples = take(source, 5)
    offsets = [(sample.monotonic_ns - samples[0].monotonic_ns) / SECOND_NS for sample in samples]
    assert offsets == [0, 0.25, 2, 4, 6]
    assert all(sample.late_ns == 0 for sample in samples)


def test_a_late_tick_says_so_and_the_grid_stays(source: LiveSource, clock: HandClock) -> None:
    steps = source.steps(StopFlag())
    start_ns = next(steps).current.monotonic_ns
    clock.now_ns = start_ns + 5 * SECOND_NS // 2
    late = next(steps).current
    assert late.monotonic_ns - start_ns == 2.5 * SECOND_NS
    assert late.late_ns == SECOND_NS // 2
    assert [event.text for event in late.events if event.kind is EventKind.MONITOR] == [
        "1 tick was left out: this host or the screen was too busy"
    ]
    assert next(steps).current.monotonic_ns - start_ns == 4 * SECOND_NS


def test_a_new_interval_begins_a_new_grid_after_the_next_sample(source: LiveSource) -> None:
    steps = source.steps(StopFlag())
    start_ns = next(steps).current.monotonic_ns
    next(steps)
    source.set_interval(0.5)
    offsets = [(next(steps).current.monotonic_ns - start_ns) / SECOND_NS for _ in range(3)]
    assert offsets == [0.75, 1.25, 1.75]
    source.set_interval(10.0)
    samples = [next(steps).current for _ in range(2)]
    assert [(sample.monotonic_ns - start_ns) / SECOND_NS for sample in samples] == [11.75, 21.75]
    assert not any(event.kind is EventKind.MONITOR for sample in samples for event in sample.events)


def test_a_sample_on_request_leaves_the_grid_as_it_is(source: LiveSource, clock: HandClock) -> None:
    def wait(stop: StopFlag, seconds: float) -> bool:
        at_s = clock.now_ns / SECOND_NS - 1_000
        if at_s == 2:
            clock.now_ns += SECOND_NS // 2
            return True
        clock.now_ns += round(seconds * SECOND_NS)
        return stop.is_set()

    clock.wait = wait  # type: ignore[method-assign]
    samples = take(source, 6)
    assert [sample.monotonic_ns / SECOND_NS - 1_000 for sample in samples] == [0, 0.25, 2, 2.5, 4, 6]
    assert not any(sample.late_ns or sample.events for sample in samples[1:])


def test_a_sample_flag_wakes_for_each_request_and_stays_awake_once_it_is_set() -> None:
    flag = SampleFlag()
    assert not flag.wait(0)
    flag.request()
    assert [flag.wait(0), flag.wait(0), flag.is_set()] == [True, False, False]
    flag.set()
    assert [flag.wait(), flag.wait(), flag.is_set()] == [True, True, True]


def test_steps_carry_the_sample_before(source: LiveSource) -> None:
    first, second = itertools.islice(source.steps(StopFlag()), 2)
    assert first.previous is None
    assert second.previous is first.current
    assert second.current.tables["disk"].rows is first.current.tables["disk"].rows


def test_the_stop_flag_ends_the_steps(source: LiveSource) -> None:
    stop = StopFlag()
    steps = source.steps(stop)
    next(steps)
    stop.set()
    assert list(steps) == []


def test_samples_bring_tables_topology_and_their_cost(source: LiveSource) -> None:
    sample = take(source, 1)[0]
    assert set(sample.tables) == {"disk", "host", "process"}
    assert sample.topology.devices["sda:8:0#3"].model == "M1"
    assert sample.topology.host.kernel == "6.12.0"
    assert sample.topology.host.tier is Tier.SAMPLED
    assert sample.cost_ns > 0
    assert sample.tables["disk"].values.dtype == np.uint64


def test_the_topology_is_kept_until_something_changes(source: LiveSource, kernel: FakeKernel) -> None:
    steps = source.steps(StopFlag())
    first = next(steps).current.topology
    assert next(steps).current.topology is first
    kernel.add(FakeDisk("sdb", minor=16, diskseq=4))
    next(steps)
    assert source._host is not None
    assert source._host.inventory.wait(10)
    assert set(next(steps).current.topology.devices) == {"sda:8:0#3", "sdb:8:16#4"}


def test_a_failing_collector_rests_and_says_so_once(kernel: FakeKernel, clock: HandClock) -> None:
    failing = FailingCollector()
    source = LiveSource(2.0, kernel.procfs, kernel.sysfs, "sampled", extra_collectors=[failing], clock=clock)
    samples = take(source, 60)
    texts = [event.text for sample in samples for event in sample.events]
    assert texts == ["failing: [Errno 5] Input/output error; left out until it can be read again"]
    assert all("disk" in sample.tables for sample in samples)
    assert 4 < failing.reads < 40
    source.close()
    source.close()
    assert failing.closed >= 1


def test_the_kernel_tier_looks_into_nothing(kernel: FakeKernel) -> None:
    source = LiveSource(1.0, kernel.procfs, kernel.sysfs, "kernel")
    assert take(source, 1)[0].topology.host.tier is Tier.KERNEL
    source.close()


@pytest.mark.parametrize("interval_s", [0.0, 0.05, float("nan"), -1.0, 1e9])
def test_impossible_intervals_are_refused(kernel: FakeKernel, interval_s: float) -> None:
    with pytest.raises(UsageError, match="interval"):
        LiveSource(interval_s, kernel.procfs, kernel.sysfs)


def test_impossible_tiers_are_refused(kernel: FakeKernel) -> None:
    with pytest.raises(UsageError, match="tier 'best': give auto, exact, sampled, kernel"):
        LiveSource(1.0, kernel.procfs, kernel.sysfs, "best")


def test_wrong_roots_are_one_line_with_the_fix(kernel: FakeKernel, tmp_path: Path) -> None:
    with pytest.raises(LunscopeError, match=r"no/block: No such file or directory: .*--sysfs"):
        LiveSource(1.0, kernel.procfs, tmp_path / "no")


def test_without_libudev_the_host_facts_say_so(kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyudev", None)
    source = LiveSource(1.0, kernel.procfs, kernel.sysfs)
    assert any("hot-plug" in notice for notice in take(source, 1)[0].topology.host.notices)
    source.close()


@pytest.mark.parametrize(
    ("due_s", "now_s", "next_s", "skipped"),
    [
        (0.0, 0.01, 0.25, 0),
        (0.25, 0.3, 1.0, 0),
        (1.0, 1.01, 2.0, 0),
        (1.0, 2.5, 2.0, 0),
        (1.0, 3.0, 3.0, 1),
        (1.0, 5.5, 5.0, 3),
        (0.0, 3.5, 3.0, 3),
    ],
)
def test_schedule(due_s: float, now_s: float, next_s: float, skipped: int) -> None:
    start = 7 * SECOND_NS + 3
    schedule = Schedule(start, SECOND_NS)
    due_ns, left_out = schedule.next(start + int(due_s * SECOND_NS), start + int(now_s * SECOND_NS))
    assert ((due_ns - start) / SECOND_NS, left_out) == (next_s, skipped)


def test_short_intervals_have_no_early_tick() -> None:
    assert Schedule(0, SECOND_NS // 10).next(0, 1) == (SECOND_NS // 10, 0)


def test_skips_are_reported_at_once_and_then_once_a_minute() -> None:
    reporter = SkipReporter()
    assert reporter.report(0, 0) == ()
    assert len(reporter.report(2, 0)) == 1
    assert reporter.report(3, 30 * SECOND_NS) == ()
    (event,) = reporter.report(0, 61 * SECOND_NS)
    assert event.data == {"skipped": 3}


def test_waiting_for_the_first_topology_ends_with_a_stop(kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    scan = TopologyScanner.scan
    go_on, began, stop = StopFlag(), StopFlag(), StopFlag()

    def slow(self: TopologyScanner, *given: Any) -> Any:
        began.set()
        go_on.wait(30)
        return scan(self, *given)

    def stop_when_begun() -> None:
        began.wait(30)
        stop.set()

    monkeypatch.setattr(TopologyScanner, "scan", slow)
    source = LiveSource(1.0, kernel.procfs, kernel.sysfs, "kernel", first_topology_s=60)
    try:
        threading.Thread(target=stop_when_begun).start()
        assert list(source.steps(stop)) == []
    finally:
        go_on.set()
        source.close()


def test_the_first_sample_has_its_topology(kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    scan = TopologyScanner.scan

    def slow(self: TopologyScanner, *given: Any) -> Any:
        time.sleep(0.5)
        return scan(self, *given)

    monkeypatch.setattr(TopologyScanner, "scan", slow)
    source = LiveSource(1.0, kernel.procfs, kernel.sysfs, "kernel", first_topology_s=60)
    try:
        assert [lun.name for lun in next(source.steps(StopFlag())).current.topology.graph.luns] == ["sda"]
    finally:
        source.close()
