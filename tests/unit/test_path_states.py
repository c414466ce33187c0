"""Paths that go and come back while lunscope runs, reported once each."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path as FilePath

import pytest

from collectors.graph import Graph, Lun, Path, Port
from collectors.model import HostFacts
from collectors.tables.block.counters import BlockCollector
from collectors.topology.inventory import Inventory
from collectors.topology.scanner import TopologyScanner
from collectors.topology.state_changes import MOST_EVENTS, limit_changes, path_changes, policy_changes, port_changes
from collectors.topology.state_changes import MOST_EVENTS as MOST_PORTS
from collectors.topology.state_changes import MOST_POLICY_EVENTS as MOST_POLICIES
from collectors.topology.state_poll import StatePoll
from engine.events import Event, EventKind
from engine.replacing import replace
from tests.fake_kernel import FakeKernel
from tests.fake_storage import FakeScsi, add_fc_disk, add_fc_host, add_nvme_controller, add_nvme_namespace


@pytest.fixture
def kernel(tmp_path: FilePath) -> FakeKernel:
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
    cause = {"port": "host0", "change": "lost", "now": "offline, active/optimized"}
    assert lost.data == {"path": "sda", "lun": "mpath0", "usable": 0, **cause}
    assert not next(path for path in inventory.topology.graph.paths if path.name == "sda").usable
    kernel.set("sda", "device/state", "running\n")
    (back,) = events_within(inventory, 1)
    assert back.text.startswith("path sda of mpath0 back: ")


def test_ana_and_controller_changes_are_reported(kernel: FakeKernel, inventory: Inventory) -> None:
    kernel.set("nvme0c1n1", "ana_state", "inaccessible\n")
    (lost,) = events_within(inventory, 1)
    assert lost.text == "path nvme0c1n1 of nvme0n1 lost: live, non-optimized -> live, inaccessible"
    kernel.set_class("nvme", "nvme0", "state", "connecting")
    port, lost = events_within(inventory, 2)
    assert port.text == "port nvme0 changed: live -> connecting"
    assert lost.text == "path nvme0c0n1 of nvme0n1 lost: live, optimized -> connecting, optimized"


def test_a_policy_that_is_changed_by_hand_is_in_force_and_reported(kernel: FakeKernel, inventory: Inventory) -> None:
    kernel.set_class("nvme-subsystem", "nvme-subsys0", "iopolicy", "queue-depth")
    (event,) = events_within(inventory, 1)
    assert event.text == "policy of nvme0n1 changed: numa -> queue-depth"
    assert event.data == {"lun": "nvme0n1", "policy": "queue-depth"}
    assert {lun.policy for lun in inventory.topology.graph.luns if lun.multipath == "nvme"} == {"queue-depth"}


def test_policies_of_many_luns_are_one_event_and_an_unknown_one_is_none() -> None:
    luns = tuple(Lun(f"k{number}", f"dm-{number}", "dm", "round-robin") for number in range(MOST_POLICIES + 1))
    others = tuple(replace(lun, policy="service-time") for lun in luns)
    unknown = tuple(replace(lun, policy="") for lun in luns)
    (change,) = policy_changes(Graph(luns=luns), Graph(luns=others), {})
    assert change == (f"policy of {len(luns)} LUNs changed", {"luns": len(luns)})
    assert list(policy_changes(Graph(luns=luns), Graph(luns=unknown), {})) == []
    assert list(policy_changes(Graph(luns=unknown), Graph(luns=luns), {})) == []


def test_a_target_that_is_full_lowers_the_limit_of_its_path(kernel: FakeKernel, inventory: Inventory) -> None:
    kernel.set("sda", "device/queue_depth", "24\n")
    (event,) = events_within(inventory, 1)
    assert (
        event.text
        == "path sda of mpath0: limit of commands 32 -> 24 (the target reported QUEUE FULL, unless somebody set it)"
    )
    assert event.data == {"path": "sda", "lun": "mpath0", "usable": 1, "queue_limit": 24}


def test_limits_of_very_many_paths_are_one_event() -> None:
    paths = tuple(Path(f"k{number}", f"sd{number}", "lun", queue_limit=32) for number in range(MOST_EVENTS + 1))
    now = Graph(paths=tuple(replace(path, queue_limit=8) for path in paths))
    assert [text for text, _ in limit_changes(Graph(paths=paths), now, {})] == [
        f"paths: limit of commands changed on {len(paths)}"
    ]


def test_ports_that_come_and_go_are_reported(kernel: FakeKernel, inventory: Inventory) -> None:
    add_nvme_controller(kernel, 7)
    (added,) = events_within(inventory, 1)
    assert (added.text, added.data) == ("port nvme7 added", {"port": "nvme7", "action": "added"})
    (kernel.sysfs / "class/nvme/nvme7").unlink()
    (removed,) = events_within(inventory, 1)
    assert removed.text == "port nvme7 removed"


def test_a_remote_port_that_became_marginal_is_reported_of_its_paths(kernel: FakeKernel, inventory: Inventory) -> None:
    folder = add_fc_host(kernel, 30, "0x10000090fa000001")
    add_fc_disk(kernel, "sdzz", folder, 30, target_wwpn="0x5000000000000aaa")
    kernel.add_class("fc_remote_ports", "rport-30:0-0", f"{folder}/rport-30:0-0/fc_remote_ports/rport-30:0-0",
                     port_state="Online")  # fmt: skip
    inventory.request(BlockCollector(str(kernel.procfs), str(kernel.sysfs)).read().tables["disk"].rows)
    assert inventory.wait(10)
    path = next(path for path in inventory.topology.graph.paths if path.name == "sdzz")
    assert path.marginal is False
    assert all(other.marginal is None for other in inventory.topology.graph.paths if other.name != "sdzz")
    inventory.read()
    kernel.set_class("fc_remote_ports", "rport-30:0-0", "port_state", "Marginal")
    events = events_within(inventory, 1)
    assert [event.text for event in events if "sdzz" in event.text] == [
        "path sdzz changed: running -> running, marginal"
    ]


@pytest.mark.parametrize("count", [1, MOST_PORTS + 1])
def test_a_rack_that_is_switched_off_is_one_event(count: int) -> None:
    ports = tuple(Port(f"p{number}", f"host{number}", "fc") for number in range(count))
    changes = [text for text, _ in port_changes(Graph(ports=ports), Graph(luns=(Lun("a", "sda"),)))]
    assert changes == (["port host0 removed"] if count == 1 else [f"ports: {count} removed"])
    assert list(port_changes(Graph(), Graph(ports=ports))) == []


def test_a_change_of_access_that_leaves_the_path_usable(kernel: FakeKernel, inventory: Inventory) -> None:
    kernel.set("nvme0c1n1", "ana_state", "optimized\n")
    (event,) = events_within(inventory, 1)
    assert event.text == "path nvme0c1n1 of nvme0n1 changed: live, non-optimized -> live, optimized"


def test_nothing_happens_nothing_is_reported(kernel: FakeKernel, inventory: Inventory) -> None:
    before = inventory.topology
    assert StatePoll(str(kernel.sysfs)).changed(before.graph) == frozenset()
    kernel.set("sda", "device/state", None)
    assert StatePoll(str(kernel.sysfs)).changed(before.graph) == frozenset()


def test_very_many_at_once_are_one_event(kernel: FakeKernel) -> None:
    rows = BlockCollector(str(kernel.procfs), str(kernel.sysfs)).read().tables["disk"].rows
    scanner = TopologyScanner(str(kernel.procfs), str(kernel.sysfs))
    before = scanner.scan(rows)[1]
    sd = [path.name for path in before.paths if path.name.startswith("sd")]
    assert len(sd) > MOST_EVENTS
    for name in sd:
        kernel.set(name, "device/state", "transport-offline\n")
    names = StatePoll(str(kernel.sysfs)).changed(before)
    assert names == frozenset(sd)
    devices, now = scanner.scan(rows, names)
    assert list(path_changes(before, now, devices)) == [
        (f"paths: {len(sd)} lost", {"lost": len(sd), "lost_paths": " ".join(sd)})
    ]
