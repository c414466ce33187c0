"""Paths that go and come back while lunscope runs, told once each."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from collectors.block import BlockCollector
from collectors.inventory import Inventory
from collectors.model import HostFacts
from collectors.topology.scanner import TopologyScanner
from collectors.topology.states import MOST_EVENTS, changed_paths, path_changes
from engine.events import Event, EventKind
from tests.fake_kernel import FakeKernel
from tests.fake_storage import FakeScsi, add_nvme_controller, add_nvme_namespace


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    kernel = FakeKernel(tmp_path)
    FakeScsi(kernel, hosts=2, luns=20, access=("active/optimized", "active/non-optimized")).build()
    folders = [add_nvme_controller(kernel, number) for number in range(2)]
    add_nvme_namespace(kernel, 1, folders, ("optimized", "non-optimized"))
    return kernel


@pytest.fixture
def inventory(kernel: FakeKernel) -> Iterator[Inventory]:
    rows = BlockCollector(str(kernel.procfs), str(kernel.sysfs)).read().tables["disk"].rows
    inventory = Inventory(str(kernel.procfs), str(kernel.sysfs), HostFacts(), poll_s=0.01)
    inventory.request(rows)
    assert inventory.wait(10)
    yield inventory
    inventory.close()


def events_within(inventory: Inventory, count: int) -> list[Event]:
    """Wait for so many events, at most ten seconds."""
    found: list[Event] = []
    end = time.monotonic() + 10
    while len(found) < count and time.monotonic() < end:
        found += inventory.read().events
        time.sleep(0.005)
    return found


def test_a_path_goes_offline_and_comes_back(kernel: FakeKernel, inventory: Inventory) -> None:
    kernel.set("sda", "device/state", "offline\n")
    (lost,) = events_within(inventory, 1)
    assert lost.kind is EventKind.HOTPLUG
    assert lost.text == "path sda of mpath0 lost: running, active/optimized -> offline, active/optimized"
    assert lost.data == {"path": "sda", "lun": "mpath0", "usable": 0}
    assert not next(path for path in inventory.topology.graph.paths if path.name == "sda").usable
    kernel.set("sda", "device/state", "running\n")
    (back,) = events_within(inventory, 1)
    assert back.text.startswith("path sda of mpath0 back: ")


def test_ana_and_controller_changes_are_told(kernel: FakeKernel, inventory: Inventory) -> None:
    kernel.set("nvme0c1n1", "ana_state", "inaccessible\n")
    (lost,) = events_within(inventory, 1)
    assert lost.text == "path nvme0c1n1 of nvme0n1 lost: live, non-optimized -> live, inaccessible"
    kernel.set_class("nvme", "nvme0", "state", "connecting")
    (lost,) = events_within(inventory, 1)
    assert lost.text == "path nvme0c0n1 of nvme0n1 lost: live, optimized -> connecting, optimized"


def test_a_change_of_access_that_leaves_the_path_usable(kernel: FakeKernel, inventory: Inventory) -> None:
    kernel.set("nvme0c1n1", "ana_state", "optimized\n")
    (event,) = events_within(inventory, 1)
    assert event.text == "path nvme0c1n1 of nvme0n1 changed: live, non-optimized -> live, optimized"


def test_nothing_happens_nothing_is_told(kernel: FakeKernel, inventory: Inventory) -> None:
    before = inventory.topology
    assert changed_paths(str(kernel.sysfs), before.graph) == frozenset()
    kernel.set("sda", "device/state", None)
    assert changed_paths(str(kernel.sysfs), before.graph) == frozenset()


def test_very_many_at_once_are_one_event(kernel: FakeKernel) -> None:
    rows = BlockCollector(str(kernel.procfs), str(kernel.sysfs)).read().tables["disk"].rows
    scanner = TopologyScanner(str(kernel.procfs), str(kernel.sysfs))
    before = scanner.scan(rows)[1]
    sd = [path.name for path in before.paths if path.name.startswith("sd")]
    assert len(sd) > MOST_EVENTS
    for name in sd:
        kernel.set(name, "device/state", "transport-offline\n")
    names = changed_paths(str(kernel.sysfs), before)
    assert names == frozenset(sd)
    devices, now = scanner.scan(rows, names)
    assert list(path_changes(before, now, devices)) == [(f"paths: {len(sd)} lost", {"lost": len(sd)})]
