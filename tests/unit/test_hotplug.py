"""Hot-plug on a fake SYSFS, with and without announcements."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from collectors.kernel.hotplug import HotplugMonitor
from collectors.kernel.hotplug_changes import (
    MOST_EVENTS,
    Change,
    DiskChange,
    changes_between,
    describe,
    describe_attentions,
    size_text,
)
from collectors.kernel.identity import DeviceInstance
from collectors.kernel.uevents import UeventListener, UnitAttention
from engine.events import Event, EventKind
from tests.fake_kernel import FakeDisk, FakeKernel


class FakeListener:
    """Announces what the test tells it to."""

    def __init__(self) -> None:
        self._ready = os.eventfd(0, os.EFD_NONBLOCK)
        self._names: frozenset[str] | None = frozenset()
        self.attentions: tuple[UnitAttention, ...] = ()

    def announce(self, names: frozenset[str] | None) -> None:
        self._names = names
        os.eventfd_write(self._ready, 1)

    def fileno(self) -> int:
        return self._ready

    def pending(self) -> bool:
        return self._names != frozenset() or bool(self.attentions)

    def take(self) -> frozenset[str] | None:
        os.eventfd_read(self._ready)
        names, self._names = self._names, frozenset()
        return names

    def take_attentions(self) -> tuple[UnitAttention, ...]:
        found, self.attentions = self.attentions, ()
        return found


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    kernel = FakeKernel(tmp_path)
    kernel.add(FakeDisk("sda", diskseq=1), FakeDisk("loop0", 7, sectors=0, diskseq=2))
    return kernel


@pytest.fixture
def listener() -> FakeListener:
    return FakeListener()


@pytest.fixture
def monitor(kernel: FakeKernel, listener: FakeListener) -> Iterator[HotplugMonitor]:
    monitor = HotplugMonitor(str(kernel.sysfs), lambda: listener)
    wait_until(lambda: bool(monitor._known))
    yield monitor
    monitor.close()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "nothing happened for 10 s"
        time.sleep(0.005)


def next_events(monitor: HotplugMonitor) -> list[Event]:
    events: list[Event] = []

    def came() -> bool:
        events.extend(monitor.read().events)
        return bool(events)

    wait_until(came)
    return events


def test_an_announced_disk_is_reported_with_size_and_model(
    kernel: FakeKernel, monitor: HotplugMonitor, listener: FakeListener
) -> None:
    kernel.add(FakeDisk("sdb", minor=16, sectors=1 << 17, attributes={"device/model": "X1\x1b[2J \n"}))
    listener.announce(frozenset({"sdb"}))
    (event,) = next_events(monitor)
    assert event.kind is EventKind.HOTPLUG
    assert event.text == "disk sdb added (64 MiB, model X1\x1b[2J)"
    assert event.data == {"name": "sdb", "action": "added", "size_bytes": 64 << 20}
    kernel.remove("sdb")
    listener.announce(frozenset({"sdb"}))
    assert [event.text for event in next_events(monitor)] == ["disk sdb removed"]


def test_what_scsi_devices_say_is_an_event_and_a_lun_set_is_said_once_for_its_target(
    monitor: HotplugMonitor, listener: FakeListener
) -> None:
    luns = "REPORTED_LUNS_DATA_HAS_CHANGED"
    listener.attentions = (
        UnitAttention("3:0:1:0", luns),
        UnitAttention("3:0:1:4", luns),
        UnitAttention("3:0:2:0", luns),
        UnitAttention("3:0:1:4", "CAPACITY_DATA_HAS_CHANGED"),
    )
    listener.announce(frozenset({"sda"}))
    events = next_events(monitor)
    assert [event.text for event in events if "SCSI" in event.text] == [
        "the LUN set of SCSI target 3:0:1 has changed: echo '0 1 -' > /sys/class/scsi_host/host3/scan finds new ones",
        "the LUN set of SCSI target 3:0:2 has changed: echo '0 2 -' > /sys/class/scsi_host/host3/scan finds new ones",
        "SCSI device 3:0:1:4 says capacity data has changed",
    ]
    assert {event.kind for event in events} == {EventKind.HOTPLUG}
    assert events[0].data == {"name": "3:0:1:0", "action": "reported luns data has changed"}


def test_very_many_that_say_something_are_one_event() -> None:
    found = [UnitAttention(f"3:0:0:{lun}", "INQUIRY_DATA_HAS_CHANGED") for lun in range(40)]
    ((text, data),) = describe_attentions(found)
    assert text == "SCSI devices: 40 say inquiry data has changed"
    assert data == {"inquiry data has changed": 40}


def test_a_loop_device_comes_with_its_file_and_changes_with_another(
    kernel: FakeKernel, monitor: HotplugMonitor, listener: FakeListener
) -> None:
    for diskseq, path, text in (
        (3, "/a.img", "disk loop0 added (1 MiB, over /a.img)"),
        (4, "/b.img", "disk loop0 replaced (1 MiB, over /b.img)"),
    ):
        kernel.set("loop0", "size", "2048\n")
        kernel.set("loop0", "diskseq", f"{diskseq}\n")
        kernel.set("loop0", "loop/backing_file", f"{path}\n")
        listener.announce(frozenset({"loop0"}))
        assert [event.text for event in next_events(monitor)] == [text]


def test_lost_announcements_have_everything_looked_at(
    kernel: FakeKernel, monitor: HotplugMonitor, listener: FakeListener
) -> None:
    kernel.remove("sda")
    kernel.add(FakeDisk("sdc", minor=32, sectors=2048))
    listener.announce(None)
    assert {event.text for event in next_events(monitor)} == {"disk sda removed", "disk sdc added (1 MiB)"}


def test_a_change_of_facts_is_counted_without_an_event(
    kernel: FakeKernel, monitor: HotplugMonitor, listener: FakeListener
) -> None:
    before = monitor.changes
    kernel.set("sda", "ro", "1\n")
    listener.announce(frozenset({"sda"}))
    wait_until(lambda: monitor.changes > before)
    assert monitor.read().events == ()


def test_what_is_not_there_and_never_was_is_no_news(monitor: HotplugMonitor, listener: FakeListener) -> None:
    touched: set[str] = set()
    for names in ({"loop0", "loop99"}, {"sda"}):
        listener.announce(frozenset(names))
        wait_until(lambda: not listener.pending())

    def is_reported() -> bool:
        touched.update(monitor.take_touched() or ())
        return "sda" in touched

    wait_until(is_reported)
    assert touched == {"sda"}
    assert monitor.changes == 1


def test_without_libudev_disks_are_compared_and_a_notice_says_so(
    kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyudev", None)
    monitor = HotplugMonitor(str(kernel.sysfs), UeventListener, rescan_s=0.05)
    wait_until(lambda: bool(monitor._known))
    assert "hot-plug" in monitor.notice
    kernel.remove("sda")
    assert [event.text for event in next_events(monitor)] == ["disk sda removed"]
    monitor.close()


def test_very_many_changes_are_one_event(kernel: FakeKernel) -> None:
    changes = [Change(DiskChange.REMOVED, f"sd{n}", 1) for n in range(MOST_EVENTS + 1)]
    ((text, data),) = describe(str(kernel.sysfs), changes)
    assert text == f"disks: {MOST_EVENTS + 1} removed"
    assert data == {"removed": MOST_EVENTS + 1}


def test_changes_by_diskseq_and_size() -> None:
    before = {
        "a": DeviceInstance(1, 10),
        "b": DeviceInstance(2, 10),
        "c": DeviceInstance(3, 10),
        "d": DeviceInstance(None, 10),
    }
    now = {
        "a": DeviceInstance(9, 10),
        "b": DeviceInstance(2, 20),
        "d": DeviceInstance(None, 10),
        "e": DeviceInstance(5, 10),
    }
    found = {change.name: change.action for change in changes_between(before, now)}
    assert found == {"a": DiskChange.REPLACED, "b": DiskChange.RESIZED, "c": DiskChange.REMOVED, "e": DiskChange.ADDED}


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (512, "512 B"), (64 << 20, "64 MiB"), (3 << 39, "1.5 TiB"), (1 << 61, "2048 PiB")]
)
def test_sizes(size: int, text: str) -> None:
    assert size_text(size) == text
