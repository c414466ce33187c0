"""What is below targets: partitions, mappings, loop devices and multipath, down to disks, paths and HBA ports."""

from __future__ import annotations

import os
from pathlib import Path

from collectors.graph import Graph, Layer, Lun, Port
from collectors.graph import Path as LunPath
from collectors.model import Device, Topology
from collectors.topology.below import Below, Descent
from tests.fake_kernel import FakeDisk, FakeKernel


def device(name: str, major: int, minor: int, kind: str = "disk", slaves: tuple[str, ...] = ()) -> Device:
    return Device(f"{name}:key", name, kind, major, minor, size_bytes=1 << 30, slaves=slaves)


DEVICES = (
    device("sda", 8, 0),
    device("sdb", 8, 16),
    device("dm-0", 252, 0, "dm", ("sda", "sdb")),
    device("dm-1", 252, 1, "dm", ("dm-0",)),
    device("loop0", 7, 0, "loop"),
    device("loop1", 7, 1, "loop"),
    device("md0", 9, 0, "md", ("loop0", "vda")),
    device("vda", 254, 0),
)
GRAPH = Graph(
    ports=(Port("p0", "host0", "fc"), Port("p1", "host1", "fc"), Port("v", "virtio1", "virtio")),
    luns=(Lun("dm-0:key", "dm-0", "dm"), Lun("vda:key", "vda"), Lun("loop0:key", "loop0"), Lun("loop1:key", "loop1")),
    paths=(
        LunPath("sda:key", "sda", "dm-0:key", "p0"),
        LunPath("sdb:key", "sdb", "dm-0:key", "p1"),
        LunPath("vda:key", "vda", "vda:key", "v"),
    ),
    layers=(Layer("dm-1:key", "dm-1", "lvm", below=("dm-0:key",)),),
)
TOPOLOGY = Topology({one.key: one for one in DEVICES}, graph=GRAPH)
VDA, LOOP0, LOOP1, MD0, DM1 = (os.makedev(*number) for number in ((254, 0), (7, 0), (7, 1), (9, 0), (252, 1)))


def stored_on(_sysfs: Path, name: str) -> tuple[int, ...]:
    return {"loop0": (DM1,), "loop1": (LOOP1,)}.get(name, ())


def below(*targets: tuple[str, tuple[int, ...]], sysfs: Path = Path("/nowhere")) -> Below:
    return Descent(TOPOLOGY, sysfs, stored_on).below(targets)


def named(users: dict[str, list[str]]) -> list[str]:
    return [key.removesuffix(":key") for key in users]


def test_a_mapping_over_multipath_leads_to_both_ports() -> None:
    found = below(("/dev/vg/home", (DM1,)))
    assert named(found.disks) == ["dm-1", "dm-0"]
    assert named(found.paths) == ["sda", "sdb"]
    assert list(found.ports) == ["p0", "p1"]


def test_an_array_over_a_loop_device_leads_to_what_its_file_is_stored_on() -> None:
    found = below(("/dev/md0", (MD0,)))
    assert named(found.disks) == ["md0", "loop0", "vda", "dm-1", "dm-0"]
    assert list(found.ports) == ["v", "p0", "p1"]


def test_what_several_targets_share_names_them_all() -> None:
    found = below(("/data/a", (VDA,)), ("/data/b", (VDA, VDA)), ("/dev/md0", (MD0,)), ("memory", ()))
    assert found.ports == {"v": ["/data/a", "/data/b", "/dev/md0"], "p0": ["/dev/md0"], "p1": ["/dev/md0"]}


def test_a_loop_device_stored_on_itself_ends() -> None:
    assert named(below(("/dev/loop1", (LOOP1,))).disks) == ["loop1"]


def test_a_partition_is_its_disk_and_unknown_numbers_are_nothing(tmp_path: Path) -> None:
    kernel = FakeKernel(tmp_path)
    kernel.add(FakeDisk("vda", diskseq=1))
    partition = kernel.sysfs / "block" / "vda" / "vda1"
    partition.mkdir()
    for name, text in (("partition", "1\n"), ("dev", "254:1\n"), ("start", "8\n"), ("size", "80\n")):
        (partition / name).write_text(text)
    links = kernel.sysfs / "dev" / "block"
    links.mkdir(parents=True, exist_ok=True)
    (links / "254:1").symlink_to(partition)
    found = below(("/data", (os.makedev(254, 1), os.makedev(99, 9))), sysfs=kernel.sysfs)
    assert named(found.disks) == ["vda"]
