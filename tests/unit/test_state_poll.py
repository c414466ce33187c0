"""States of paths in time: polls that scans do not delay, I/O as evidence, ages, and disks that go unannounced."""

from __future__ import annotations

import fcntl
import os
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path as FilePath
from threading import Event as StopFlag
from typing import Any

import pytest

from collectors.graph import Graph, Path
from collectors.kernel.hotplug import HotplugMonitor
from collectors.kernel.uevents import UnitAttention
from collectors.model import HostFacts
from collectors.paths.state import contradicted_paths
from collectors.rates import derive
from collectors.sources.live import LiveSource
from collectors.tables.block.counters import BlockCollector
from collectors.topology import state_poll
from collectors.topology.inventory import Inventory
from collectors.topology.scanner import TopologyScanner
from collectors.topology.state_poll import MOST_REPORTS, MapEvents, StatePoll, read_event_numbers
from engine._native import AttributeWatch, is_sysfs
from engine.events import Event
from engine.hostfs.dm_control import HEADER
from tests.fake_kernel import FakeDisk, FakeKernel
from tests.fake_storage import FakeScsi
from tests.unit.raw_samples import disks
from tests.unit.raw_samples import rows as rows_of

SOON_S = 2.0
"""Within which a state of a small host is to be an event."""
DEAR_SCAN_S = 0.25
"""CPU of a scan that would have held the next poll up by 12 s, were it on the same account."""


@pytest.fixture
def kernel(tmp_path: FilePath) -> FakeKernel:
    kernel = FakeKernel(tmp_path)
    FakeScsi(kernel, hosts=2, luns=4, access=("active/optimized", "active/non-optimized")).build()
    return kernel


def inventory_of(kernel: FakeKernel, **settings: Any) -> Inventory:
    rows = BlockCollector(str(kernel.procfs), str(kernel.sysfs)).read().tables["disk"].rows
    inventory = Inventory(str(kernel.procfs), str(kernel.sysfs), HostFacts(), **settings)
    inventory.request(rows)
    assert inventory.wait(10)
    return inventory


@pytest.fixture
def inventory(kernel: FakeKernel) -> Iterator[Inventory]:
    inventory = inventory_of(kernel, poll_s=0.01)
    yield inventory
    inventory.close()


def first_event(inventory: Inventory, timeout_s: float = 20.0) -> tuple[Event, float]:
    """The next event, and after how many seconds it came."""
    started_s = time.monotonic()
    while time.monotonic() - started_s < timeout_s:
        events = inventory.read().events
        if events:
            return events[0], time.monotonic() - started_s
        time.sleep(0.005)
    raise AssertionError(f"no event in {timeout_s:g} s")


def spend_cpu(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


@pytest.mark.slow
def test_a_scan_that_a_change_leads_to_does_not_delay_the_next_poll(
    kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan = TopologyScanner.scan

    def dear(*args: Any, **settings: Any) -> Any:
        spend_cpu(DEAR_SCAN_S)
        return scan(*args, **settings)

    monkeypatch.setattr(TopologyScanner, "scan", dear)
    inventory = inventory_of(kernel)
    try:
        kernel.set("sda", "device/state", "offline\n")
        assert "lost" in first_event(inventory)[0].text
        kernel.set("sda", "device/state", "running\n")
        back, took_s = first_event(inventory)
        assert "back" in back.text
        # The scan itself, and the time it waits because the one before was dear, are in it: but for those it is SOON_S.
        assert took_s < SOON_S + 6 * DEAR_SCAN_S
    finally:
        inventory.close()


def test_a_path_that_completes_io_is_not_called_offline(kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """The polls see nothing here, so that only what the path does can tell."""
    source = LiveSource(0.1, kernel.procfs, kernel.sysfs, "kernel", first_topology_s=10)
    steps = source.steps(StopFlag())
    try:
        kernel.set("sda", "device/state", "offline\n")
        sample = next(steps).current
        assert not next(path for path in sample.topology.graph.paths if path.name == "sda").usable
        monkeypatch.setattr(StatePoll, "changed", lambda *_: frozenset())
        kernel.set("sda", "device/state", "running\n")
        assert not next(path for path in next(steps).current.topology.graph.paths if path.name == "sda").usable
        kernel.count("sda", (10, 0, 80, 5))
        kernel.write_diskstats()
        for _ in range(50):
            sample = next(steps).current
            if next(path for path in sample.topology.graph.paths if path.name == "sda").usable:
                break
        else:
            raise AssertionError("the path is still called offline")
    finally:
        source.close()


def test_only_unusable_paths_that_completed_something_are_contradicted() -> None:
    who = rows_of("sda", "sdb", "sdc", "sdd")
    states = ("offline", "offline", "running", "offline")
    named = zip(who.keys, who.names, states, strict=True)
    graph = Graph(paths=tuple(Path(key, name, "lun", state=state) for key, name, state in named))
    before = disks(who, {"reads": 5}, {"reads": 5}, {"reads": 5}, {"writes": 5})
    now = disks(who, {"reads": 6}, {"reads": 5}, {"reads": 9}, {"writes": 7})
    assert contradicted_paths(before, now, graph) == {"sda", "sdd"}
    assert contradicted_paths(None, now, graph) == frozenset()


def test_samples_say_how_old_the_states_are(kernel: FakeKernel) -> None:
    source = LiveSource(0.1, kernel.procfs, kernel.sysfs, "kernel", first_topology_s=10)
    try:
        steps = source.steps(StopFlag())
        next(steps)
        for step in (next(steps) for _ in range(100)):
            if "path_state" in step.current.tables:
                break
        frame = derive(step.previous, step.current)
        assert 0 <= frame.states_age_s < 60
    finally:
        source.close()


def test_without_paths_there_is_no_age(tmp_path: FilePath) -> None:
    kernel = FakeKernel(tmp_path)
    kernel.add(FakeDisk("loop0", 7, at="virtual/block/loop0"))
    inventory = inventory_of(kernel, poll_s=0.01)
    time.sleep(0.1)
    assert inventory.read().tables == {}
    inventory.close()


def test_what_a_scan_does_not_repair_is_not_reported_for_ever(kernel: FakeKernel) -> None:
    rows = BlockCollector(str(kernel.procfs), str(kernel.sysfs)).read().tables["disk"].rows
    _, graph = TopologyScanner(str(kernel.procfs), str(kernel.sysfs)).scan(rows)
    poll = StatePoll(str(kernel.sysfs))
    kernel.set("sdb", "device/state", "blocked\n")
    found = [poll.changed(graph) for _ in range(MOST_REPORTS + 2)]
    assert found == [frozenset({"sdb"})] * MOST_REPORTS + [frozenset()] * 2
    kernel.set("sdb", "device/state", "offline\n")
    assert poll.changed(graph) == {"sdb"}
    kernel.set("sdb", "device/state", "running\n")
    assert poll.changed(graph) == frozenset()


def test_a_state_that_a_scan_read_in_between_is_compared_again(kernel: FakeKernel) -> None:
    rows = BlockCollector(str(kernel.procfs), str(kernel.sysfs)).read().tables["disk"].rows
    scanner = TopologyScanner(str(kernel.procfs), str(kernel.sysfs))
    _, before = scanner.scan(rows)
    poll = StatePoll(str(kernel.sysfs))
    assert poll.changed(before) == frozenset()
    kernel.set("sdb", "device/state", "offline\n")
    _, offline = scanner.scan(rows, frozenset({"sdb"}))
    kernel.set("sdb", "device/state", "running\n")
    assert poll.changed(offline) == {"sdb"}


class Silent:
    """A listener that hears nothing, as in another network namespace."""

    def __init__(self) -> None:
        self._never = os.eventfd(0, os.EFD_NONBLOCK)

    def fileno(self) -> int:
        return self._never

    def pending(self) -> bool:
        return False

    def take(self) -> frozenset[str] | None:
        return frozenset()

    def take_attentions(self) -> tuple[UnitAttention, ...]:
        return ()


def events_of(
    monitor: HotplugMonitor, wanted: Callable[[str], bool], timeout_s: float = 20.0
) -> tuple[set[str], float]:
    started_s, texts = time.monotonic(), set[str]()
    while not any(map(wanted, texts)):
        assert time.monotonic() - started_s < timeout_s, texts
        texts |= {event.text for event in monitor.read().events}
        time.sleep(0.005)
    return texts, time.monotonic() - started_s


@pytest.mark.slow
def test_disks_that_come_and_go_without_an_announcement_are_reported_soon(kernel: FakeKernel) -> None:
    monitor = HotplugMonitor(str(kernel.sysfs), Silent)
    try:
        time.sleep(0.1)
        kernel.remove("sdb", uevent=False)
        texts, took_s = events_of(monitor, lambda text: "removed" in text)
        assert texts == {"disk sdb removed"}
        assert took_s < 2 * SOON_S
        kernel.add(FakeDisk("sdx", minor=240, sectors=0, diskseq=77))
        time.sleep(1.2)
        # The size comes after the entry, and nothing announces it either.
        kernel.set("sdx", "size", "2048\n")
        texts, took_s = events_of(monitor, lambda text: "added" in text)
        assert texts == {"disk sdx added (1 MiB)"}
        assert took_s < 2 * SOON_S
    finally:
        monitor.close()


def test_a_removal_without_an_announcement_leaves_the_sample(
    kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("collectors.sources.host_readers.HotplugMonitor", lambda sysfs: HotplugMonitor(sysfs, Silent))
    source = LiveSource(0.1, kernel.procfs, kernel.sysfs, "kernel", first_topology_s=10)
    try:
        steps = source.steps(StopFlag())
        assert "sdb" in next(steps).current.tables["disk"].rows.names
        kernel.remove("sdb", uevent=False)
        started_s, is_reported = time.monotonic(), False
        while not is_reported:
            sample = next(steps).current
            is_reported = any(event.text == "disk sdb removed" for event in sample.events)
            assert time.monotonic() - started_s < 10
        assert "sdb" not in next(steps).current.tables["disk"].rows.names
    finally:
        source.close()


def test_attributes_through_descriptors_that_stay_open(kernel: FakeKernel) -> None:
    watch = AttributeWatch(f"{kernel.sysfs}/block", ["sda", "sdb"], ["device/state", "ana_state"], keep=True)
    assert watch.read() == [(0, [b"running\n", None]), (1, [b"running\n", None])]
    assert watch.kept == 2
    kernel.set("sdb", "device/state", "offline\n")
    assert watch.read([0]) == []
    assert watch.read() == [(1, [b"offline\n", None])]
    with pytest.raises(IndexError):
        watch.read([2])
    assert not is_sysfs(str(kernel.sysfs))
    assert is_sysfs("/sys")


def map_list(*maps: tuple[int, int, str, int]) -> bytes:
    """What DM_LIST_DEVICES answers: device number, name and event number of each map."""
    body = b""
    for place, (major, minor, name, event) in enumerate(maps):
        text = name.encode() + b"\0"
        text += b"\0" * (-(12 + len(text)) % 8)
        entry = text + struct.pack("=II", event, 0)
        entry += b"\0" * (-(12 + len(entry)) % 8)
        following = 0 if place == len(maps) - 1 else 12 + len(entry)
        body += struct.pack("=QI", (minor & 0xFF) | major << 8 | (minor & ~0xFF) << 12, following) + entry
    return body or struct.pack("=QI", 0, 0)


@pytest.mark.parametrize("count", [0, 1, 700])
def test_event_numbers_of_all_maps_in_one_answer(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    maps = [(253, number, f"mpath{number}", number * 3) for number in range(count)]
    sizes = []

    def answer(_descriptor: int, _request: int, buffer: bytearray) -> int:
        body, sizes_now = map_list(*maps), len(buffer)
        sizes.append(sizes_now)
        full = HEADER.size + len(body) > sizes_now
        flags = 1 << 8 if full else 0
        HEADER.pack_into(buffer, 0, 4, 48, 0, sizes_now, HEADER.size, 0, 0, flags, 0, 0, 0, b"", b"")
        if not full:
            buffer[HEADER.size : HEADER.size + len(body)] = body
        return 0

    monkeypatch.setattr(state_poll, "CONTROL", "/dev/null")
    monkeypatch.setattr(fcntl, "ioctl", answer)
    assert read_event_numbers() == {(253, number): number * 3 for number in range(count)}
    events = MapEvents()
    assert events.moved() == bool(count)
    assert not events.moved()
    if count:
        maps[0] = (253, 0, "mpath0", 99)
        assert events.moved()
    monkeypatch.setattr(state_poll, "CONTROL", "/no/such/file")
    assert not events.moved()
