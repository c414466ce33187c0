"""Every kind of storage has its place in the graph, recognised in a fake tree laid out as its driver does."""

from __future__ import annotations

from pathlib import Path

import pytest

from collectors.graph import Graph
from collectors.tables.block.counters import BlockCollector
from collectors.topology.scanner import TopologyScanner
from tests.fake_kernel import FakeDisk, FakeKernel
from tests.fake_storage import DM_MAJOR, FakeScsi, add_nvme_controller, add_nvme_namespace


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    return FakeKernel(tmp_path)


def scan(kernel: FakeKernel) -> Graph:
    rows = BlockCollector(str(kernel.procfs), str(kernel.sysfs)).read().tables["disk"].rows
    return TopologyScanner(str(kernel.procfs), str(kernel.sysfs)).scan(rows)[1]


def add_map(kernel: FakeKernel, number: int, name: str, uuid: str, slaves: list[str]) -> None:
    facts: dict[str, str | bytes | None] = {"dm/name": f"{name}\n", "dm/uuid": f"{uuid}\n"}
    place = f"virtual/block/dm-{number}"
    kernel.add(FakeDisk(f"dm-{number}", DM_MAJOR, number, attributes=facts, at=place, slaves=slaves))


@pytest.mark.parametrize(
    ("uuid", "kind"),
    [
        ("CRYPT-LUKS2-0123456789abcdef-home", "crypt"),
        ("LVM-abcdefghijklmnop", "lvm"),
        ("part1-mpath-3600", "partition"),
        ("DMRAID-isw_x", "dm"),
        ("", "dm"),
    ],
)
def test_what_a_device_mapper_device_is_made_for(kernel: FakeKernel, uuid: str, kind: str) -> None:
    FakeScsi(kernel, hosts=1, luns=1, maps=False).build()
    add_map(kernel, 0, "home", uuid, ["sda"])
    graph = scan(kernel)
    assert [(layer.kind, layer.label, layer.below) for layer in graph.layers] == [(kind, "home", (graph.luns[0].key,))]
    assert [lun.name for lun in graph.luns] == ["sda"]


@pytest.mark.parametrize(
    ("name", "major", "facts", "kind"),
    [
        ("bcache0", 251, {}, "bcache"),
        ("drbd0", 147, {}, "drbd"),
        ("md0", 9, {"md/level": "raid10\n"}, "raid10"),
        ("md_d0", 254, {}, "md"),
    ],
)
def test_what_else_stands_on_disks(
    kernel: FakeKernel, name: str, major: int, facts: dict[str, str | bytes | None], kind: str
) -> None:
    FakeScsi(kernel, hosts=1, luns=2, maps=False).build()
    place = f"virtual/block/{name}"
    kernel.add(FakeDisk(name, major, 0, attributes=facts, at=place, slaves=["sda", "sdb"]))
    graph = scan(kernel)
    assert [(layer.name, layer.kind, len(layer.below)) for layer in graph.layers] == [(name, kind, 2)]
    assert [lun.name for lun in graph.luns] == ["sda", "sdb"]


def test_a_multipath_map_made_by_hand_has_no_uuid(kernel: FakeKernel) -> None:
    FakeScsi(kernel, hosts=2, luns=1, maps=False).build()
    add_map(kernel, 0, "byhand", "", ["sda", "sdb"])
    graph = scan(kernel)
    assert [(lun.name, lun.multipath) for lun in graph.luns] == [("dm-0", "dm")]
    assert {path.name: path.lun for path in graph.paths} == dict.fromkeys(("sda", "sdb"), graph.luns[0].key)
    assert graph.notices == ()


def test_a_stripe_made_by_hand_is_no_multipath_map(kernel: FakeKernel) -> None:
    FakeScsi(kernel, hosts=1, luns=2, maps=False).build()
    add_map(kernel, 0, "stripe", "", ["sda", "sdb"])
    graph = scan(kernel)
    assert [lun.name for lun in graph.luns] == ["sda", "sdb"]
    assert [layer.kind for layer in graph.layers] == ["dm"]


@pytest.mark.parametrize(
    "way", ["port-4:0/end_device-4:0", "port-4:0/expander-4:0/port-4:0:3/end_device-4:0:3"], ids=["direct", "expander"]
)
def test_sas_names_the_far_end(kernel: FakeKernel, way: str) -> None:
    host, end_device = "pci0000:00/0000:00:05.0/host4", way.rpartition("/")[2]
    kernel.add_class("scsi_host", "host4", f"{host}/scsi_host/host4", proc_name="mpt3sas", can_queue=9664)
    kernel.add_class("sas_host", "host4", f"{host}/sas_host/host4")
    kernel.add_class(
        "sas_device", end_device, f"{host}/{way}/sas_device/{end_device}", sas_address="0x5000c500a1b2c3d5"
    )
    kernel.add(FakeDisk("sda", at=f"{host}/{way}/target4:0:0/4:0:0:0/block/sda"))
    graph = scan(kernel)
    (port,), (target,), (path,) = graph.ports, graph.targets, graph.paths
    assert (port.name, port.transport, port.driver, port.queue_limit) == ("host4", "sas", "mpt3sas", 9664)
    assert (target.name, target.transport) == ("0x5000c500a1b2c3d5", "sas")
    assert (path.port, path.target, path.address) == (port.key, target.key, "4:0:0:0")


def test_nvme_over_rdma_is_one_port_by_its_own_address(kernel: FakeKernel) -> None:
    address = "traddr=192.168.0.{},trsvcid=4420,host_traddr=192.168.0.1"
    folders = [add_nvme_controller(kernel, number, "rdma", address.format(number + 8)) for number in range(2)]
    add_nvme_namespace(kernel, 1, folders, ("optimized", "non-optimized"))
    graph = scan(kernel)
    (port,) = graph.ports
    assert (port.transport, port.address, port.members) == ("nvme-rdma", "192.168.0.1", ("nvme0", "nvme1"))
    assert [target.name for target in graph.targets] == ["192.168.0.8:4420", "192.168.0.9:4420"]
    assert [(path.access, path.usable) for path in graph.paths] == [("optimized", True), ("non-optimized", True)]


@pytest.mark.parametrize(("folder", "transport"), [("ata1/", "ata"), ("usb2/2-1/2-1:1.0/", "usb"), ("", "scsi")])
def test_plain_disks_on_sata_and_usb(kernel: FakeKernel, folder: str, transport: str) -> None:
    host = f"pci0000:00/0000:00:1f.2/{folder}host0"
    kernel.add_class("scsi_host", "host0", f"{host}/scsi_host/host0", proc_name="ahci", can_queue=32)
    kernel.add(FakeDisk("sda", at=f"{host}/target0:0:0/0:0:0:0/block/sda"))
    graph = scan(kernel)
    assert [(port.name, port.transport, port.parent) for port in graph.ports] == [("host0", transport, "0000:00:1f.2")]
    assert [path.port for path in graph.paths] == [graph.ports[0].key]


def test_a_virtio_disk_is_its_own_port(kernel: FakeKernel) -> None:
    kernel.add(FakeDisk("vda", 254, 0, at="pci0000:00/0000:00:04.0/virtio1/block/vda"))
    graph = scan(kernel)
    assert [(port.name, port.transport, port.parent) for port in graph.ports] == [("virtio1", "virtio", "0000:00:04.0")]
    assert [(path.name, path.lun, path.port) for path in graph.paths] == [
        ("vda", graph.luns[0].key, graph.ports[0].key),
    ]  # fmt: skip
