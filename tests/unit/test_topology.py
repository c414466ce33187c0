"""The device graph from fake trees: what is a LUN, a path, a port; and trees that are broken."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from collectors.graph import Graph
from collectors.kernel.sysfs import location_of
from collectors.tables.block.counters import BlockCollector
from collectors.topology.device_mapper import MapPath, parse_map, with_map_states
from collectors.topology.scanner import TopologyScanner
from tests.fake_kernel import FakeDisk, FakeKernel
from tests.fake_storage import (
    FakeScsi,
    add_fc_disk,
    add_fc_host,
    add_nvme_controller,
    add_nvme_namespace,
    sd_name,
)


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    return FakeKernel(tmp_path)


def scan(kernel: FakeKernel) -> Graph:
    rows = BlockCollector(str(kernel.procfs), str(kernel.sysfs)).read().tables["disk"].rows
    return TopologyScanner(str(kernel.procfs), str(kernel.sysfs)).scan(rows)[1]


def paths_by_lun(graph: Graph) -> dict[str, list[str]]:
    return {lun.name: sorted(graph.paths[place].name for place in graph.paths_of[lun.key]) for lun in graph.luns}


def test_dm_multipath_over_two_hosts(kernel: FakeKernel) -> None:
    scsi = FakeScsi(kernel, hosts=2, luns=2, access=("active/optimized", "standby")).build()
    graph = scan(kernel)
    assert paths_by_lun(graph) == {
        f"dm-{lun}": sorted([scsi.names[0, 0, lun], scsi.names[1, 0, lun]]) for lun in range(2)
    }
    assert {lun.multipath for lun in graph.luns} == {"dm"}
    assert [port.name for port in graph.ports] == ["host0", "host1"]
    assert [port.queue_limit for port in graph.ports] == [256, 256]
    first, other = graph.paths[0], next(path for path in graph.paths if path.name == scsi.names[1, 0, 0])
    assert (first.address, first.state, first.access, first.queue_limit) == (
        "0:0:0:0",
        "running",
        "active/optimized",
        32,
    )
    assert first.usable
    assert not other.usable
    assert graph.notices == ()


def test_a_plain_disk_is_its_own_only_path(kernel: FakeKernel) -> None:
    FakeScsi(kernel, hosts=1, luns=1, maps=False).build()
    graph = scan(kernel)
    assert paths_by_lun(graph) == {"sda": ["sda"]}
    assert graph.paths[0].key == graph.luns[0].key


def test_loop_and_memory_disks_have_no_path(kernel: FakeKernel) -> None:
    kernel.add(FakeDisk("loop0", 7, 0, at="virtual/block/loop0"), FakeDisk("zram0", 251, 0, at="virtual/block/zram0"))
    graph = scan(kernel)
    assert paths_by_lun(graph) == {"loop0": [], "zram0": []}
    assert graph.ports == ()


def test_nvme_multipath_with_ana(kernel: FakeKernel) -> None:
    folders = [add_nvme_controller(kernel, number) for number in range(2)]
    add_nvme_namespace(kernel, 1, folders, ("optimized", "inaccessible"), iopolicy="round-robin")
    graph = scan(kernel)
    assert paths_by_lun(graph) == {"nvme0n1": ["nvme0c0n1", "nvme0c1n1"]}
    assert [(lun.multipath, lun.policy) for lun in graph.luns] == [("nvme", "round-robin")]
    paths = {path.name: path for path in graph.paths}
    assert paths["nvme0c0n1"].usable
    assert (paths["nvme0c1n1"].state, paths["nvme0c1n1"].access) == ("live", "inaccessible")
    assert not paths["nvme0c1n1"].usable
    assert {port.transport for port in graph.ports} == {"nvme-pcie"}
    assert {port.queue_limit for port in graph.ports} == {4 * 127}


def test_a_controller_that_reconnects_takes_no_io(kernel: FakeKernel) -> None:
    folder = add_nvme_controller(kernel, 0, "tcp", "traddr=10.0.0.2,trsvcid=4420,src_addr=10.0.0.1")
    add_nvme_namespace(kernel, 1, [folder])
    kernel.set_class("nvme", "nvme0", "state", "connecting")
    graph = scan(kernel)
    assert (graph.paths[0].state, graph.paths[0].usable) == ("connecting", False)
    assert graph.targets[0].name == "10.0.0.2:4420"


def test_fcp_npiv_and_nvme_of_one_wwpn_are_one_port(kernel: FakeKernel) -> None:
    folder = add_fc_host(kernel, 3, "0x10000090fa000001")
    virtual = add_fc_host(kernel, 5, "0x20010090fa000001", below=folder)
    add_fc_host(kernel, 4, "0x10000090fa000002")
    add_fc_disk(kernel, "sda", folder, 3, target_wwpn="0x5000000000000aaa")
    add_fc_disk(kernel, "sdb", virtual, 5, target_wwpn="0x5000000000000bbb", minor=16)
    controller = add_nvme_controller(
        kernel, 0, "fc", "traddr=nn-0x5000:pn-0x5000000000000ccc,host_traddr=nn-0x2000:pn-0x10000090fa000001"
    )
    add_nvme_namespace(kernel, 1, [controller])
    graph = scan(kernel)
    ports = {port.key: port for port in graph.ports}
    assert set(ports) == {"fc:0x10000090fa000001", "fc:0x10000090fa000002"}
    port = ports["fc:0x10000090fa000001"]
    assert port.members == ("host3", "host5", "nvme0")
    assert port.scsi_hosts == ("host3", "host5")
    assert {path.name for path in graph.paths if path.port == port.key} == {"sda", "sdb", "nvme0c0n1"}
    targets = {path.name: path.target for path in graph.paths}
    assert targets["sda"] == "fc:0x5000000000000aaa"
    assert targets["nvme0c0n1"] == "fc:0x5000000000000ccc"


def test_iscsi_names_target_and_portal(kernel: FakeKernel) -> None:
    kernel.add_class("scsi_host", "host0", "platform/host0/scsi_host/host0", proc_name="iscsi_tcp", can_queue=113)
    kernel.add_class("iscsi_host", "host0", "platform/host0/iscsi_host/host0", ipaddress="10.0.0.1", netdev="(null)")
    kernel.add_class("iscsi_session", "session1", "platform/host0/session1/iscsi_session/session1",
                     targetname="iqn.x:a", tpgt=1, state="LOGGED_IN")  # fmt: skip
    kernel.add_class("iscsi_connection", "connection1:0", "platform/host0/session1/connection1:0/x",
                     persistent_address="10.0.0.9", persistent_port=3260)  # fmt: skip
    kernel.add(FakeDisk("sda", at="platform/host0/session1/target0:0:0/0:0:0:1/block/sda"))
    graph = scan(kernel)
    assert [(port.transport, port.address) for port in graph.ports] == [("iscsi", "10.0.0.1")]
    assert graph.targets[0].name == "iqn.x:a,1@10.0.0.9:3260"


def test_layers_and_mounts(kernel: FakeKernel) -> None:
    FakeScsi(kernel, hosts=1, luns=1, maps=False).build()
    part = kernel.add_partition("sda", 1)
    lvm = {"dm/name": "vg-data\n", "dm/uuid": "LVM-abc\n"}
    kernel.add(FakeDisk("dm-0", 253, 0, attributes=lvm, at="virtual/block/dm-0", slaves=[part]))
    kernel.add(FakeDisk("md0", 9, 0, attributes={"md/level": "raid0\n"}, at="virtual/block/md0", slaves=["dm-0"]))
    kernel.write_proc(
        "1/mountinfo", "30 1 9:0 / /srv/a\\040b rw - xfs /dev/md0 rw\n31 1 0:5 / /proc rw - proc proc rw\n"
    )
    kernel.write_proc("swaps", f"Filename Type Size Used Priority\n/dev/{part} partition 1 0 -2\n")
    graph = scan(kernel)
    layers = {layer.name: layer for layer in graph.layers}
    assert [(layer.name, layer.kind) for layer in graph.layers] == [
        ("sda1", "partition"), ("dm-0", "lvm"), ("md0", "raid0"),
    ]  # fmt: skip
    assert layers["sda1"].below == (graph.luns[0].key,)
    assert layers["dm-0"].below == (layers["sda1"].key,)
    assert layers["md0"].below == (layers["dm-0"].key,)
    assert {(mount.key, mount.point, mount.filesystem) for mount in graph.mounts} == {
        (layers["md0"].key, "/srv/a b", "xfs"),
        (layers["sda1"].key, "[swap]", "swap"),
    }


def test_two_disks_of_one_identity_are_reported(kernel: FakeKernel) -> None:
    FakeScsi(kernel, hosts=2, luns=1, maps=False).build()
    graph = scan(kernel)
    assert paths_by_lun(graph) == {"sda": ["sda"], "sdb": ["sdb"]}
    assert any("sda, sdb: same identity naa.600000000000" in notice for notice in graph.notices)


def test_a_map_over_two_different_disks_is_reported(kernel: FakeKernel) -> None:
    FakeScsi(kernel, hosts=2, luns=1).build()
    kernel.set("sdb", "device/wwid", "naa.other\n")
    assert any("dm-0: its paths have different identities" in notice for notice in scan(kernel).notices)


def test_a_map_without_paths_and_one_whose_path_is_lost(kernel: FakeKernel) -> None:
    facts = {"dm/name": "mpatha\n", "dm/uuid": "mpath-3600\n"}
    kernel.add(FakeDisk("dm-0", 253, 0, attributes=facts, at="virtual/block/dm-0"))
    kernel.add(FakeDisk("dm-1", 253, 1, attributes=facts, at="virtual/block/dm-1", slaves=["sdz"]))
    graph = scan(kernel)
    assert paths_by_lun(graph) == {"dm-0": [], "dm-1": []}
    assert graph.notices == ("dm-1: built on sdz, which is not there",)


def test_what_vanishes_between_listing_and_reading(kernel: FakeKernel) -> None:
    FakeScsi(kernel, hosts=2, luns=1).build()
    rows = BlockCollector(str(kernel.procfs), str(kernel.sysfs)).read().tables["disk"].rows
    shutil.rmtree(kernel.sysfs / kernel.disks["sdb"].folder)
    (kernel.sysfs / "class/scsi_host/host1").unlink()
    devices, graph = TopologyScanner(str(kernel.procfs), str(kernel.sysfs)).scan(rows)
    assert {device.name for device in devices.values()} == {"sda", "sdb", "dm-0"}
    assert paths_by_lun(graph) == {"dm-0": ["sda", "sdb"]}
    assert next(path for path in graph.paths if path.name == "sdb").port == ""


def test_no_sysfs_at_all(kernel: FakeKernel) -> None:
    FakeScsi(kernel, hosts=1, luns=1).build()
    rows = BlockCollector(str(kernel.procfs), str(kernel.sysfs)).read().tables["disk"].rows
    shutil.rmtree(kernel.sysfs)
    devices, graph = TopologyScanner(str(kernel.procfs), str(kernel.sysfs)).scan(rows)
    assert len(devices) == len(graph.luns) + len(graph.layers) == 2


def test_only_what_changed_is_read_again(kernel: FakeKernel) -> None:
    FakeScsi(kernel, hosts=2, luns=2).build()
    rows = BlockCollector(str(kernel.procfs), str(kernel.sysfs)).read().tables["disk"].rows
    scanner = TopologyScanner(str(kernel.procfs), str(kernel.sysfs))
    scanner.scan(rows)
    for name in ("sda", "sdb"):
        kernel.set(name, "device/state", "offline\n")
    states = {path.name: path.state for path in scanner.scan(rows, frozenset({"sda"}))[1].paths}
    assert (states["sda"], states["sdb"]) == ("offline", "running")
    states = {path.name: path.state for path in scanner.scan(rows)[1].paths}
    assert states["sdb"] == "offline"


def test_a_change_gives_the_same_graph_as_a_new_scan(kernel: FakeKernel) -> None:
    FakeScsi(kernel, hosts=2, luns=2).build()
    collector = BlockCollector(str(kernel.procfs), str(kernel.sysfs))
    scanner = TopologyScanner(str(kernel.procfs), str(kernel.sysfs))
    scanner.scan(collector.read().tables["disk"].rows)
    kernel.remove("sdd")
    (kernel.sysfs / kernel.disks["dm-1"].folder / "slaves/sdd").unlink()
    rows = collector.read().tables["disk"].rows
    devices, graph = scanner.scan(rows, frozenset({"sdd", "dm-1"}))
    fresh_devices, fresh = TopologyScanner(str(kernel.procfs), str(kernel.sysfs)).scan(rows)
    assert graph.records == fresh.records
    assert devices == fresh_devices


def test_map_status_of_two_groups() -> None:
    table = "1 queue_if_no_path 1 alua 2 1 service-time 0 2 2 8:0 1 5 8:16 1 1 queue-length 0 1 1 8:32 1"
    status = "2 0 0 1 emc 2 1 A 0 2 2 8:0 A 0 0 5 8:16 F 3 0 1 E 0 1 1 8:32 A 1 0"
    state = parse_map(table, status)
    assert state is not None
    assert state.policy == "service-time/queue-length"
    assert state.paths == {
        (8, 0): MapPath("active", 0, 1, 5, "active"),
        (8, 16): MapPath("failed", 3, 1, 1, "active"),
        (8, 32): MapPath("active", 1, 2, 1, "enabled"),
    }
    assert (state.features, state.hw_handler) == ("queue_if_no_path", "alua")


@pytest.mark.parametrize("table", ["", "0", "0 0 x", "0 0 1 1 round-robin 0 2 1 8:0 1", "99999999 a"])
def test_a_table_that_is_cut_off(table: str) -> None:
    assert parse_map(table, "") is None


def test_a_status_that_is_cut_off_leaves_states_open() -> None:
    state = parse_map("0 0 1 1 round-robin 0 1 1 8:0 1", "2 0 0 1")
    assert state is not None
    assert state.paths == {(8, 0): MapPath("", None, 1, 1)}


def test_map_states_reach_luns_and_paths(kernel: FakeKernel) -> None:
    FakeScsi(kernel, hosts=2, luns=1).build()
    rows = BlockCollector(str(kernel.procfs), str(kernel.sysfs)).read().tables["disk"].rows
    devices, graph = TopologyScanner(str(kernel.procfs), str(kernel.sysfs)).scan(rows)
    state = parse_map("0 0 1 1 round-robin 0 2 1 8:0 1 8:16 1", "2 0 0 0 1 1 A 0 2 0 8:0 A 0 8:16 F 7")
    assert state is not None
    changed = with_map_states(graph, devices, {(253, 0): state})
    assert [lun.policy for lun in changed.luns] == ["round-robin"]
    assert [(path.map_state, path.failures, path.usable) for path in changed.paths] == [
        ("active", 0, True), ("failed", 7, False),
    ]  # fmt: skip


@pytest.mark.parametrize(("index", "name"), [(0, "sda"), (25, "sdz"), (26, "sdaa"), (701, "sdzz"), (702, "sdaaa")])
def test_names_of_fake_disks(index: int, name: str) -> None:
    assert sd_name(index) == name


def test_a_link_that_leads_elsewhere_says_nothing() -> None:
    assert location_of("../devices/pci0000:00/0000:00:01.0/host0/target0:0:0/0:0:0:0/block/sdb", "sda")[1] == ""
    location, address = location_of(
        "../devices/pci0000:00/0000:00:1f.2/ata3/host2/target2:0:0/2:0:0:0/block/sda", "sda"
    )
    assert (location.parent, location.host, location.ata, location.target, address) == (
        "0000:00:1f.2", "host2", "ata3", "target2:0:0", "2:0:0:0",
    )  # fmt: skip
