"""Scopes: which disks, subsystems and groups they name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.errors import UsageError
from engine.tune.registry import BY_ID
from engine.tune.scope import Host
from engine.tune.tree import KernelTree
from tests.fake_cgroups import FakeCgroups
from tests.fake_kernel import FakeDisk, FakeKernel
from tests.unit.tune.hosts import WWID, make_host


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    return make_host(tmp_path)


@pytest.fixture
def host(kernel: FakeKernel) -> Iterator[Host]:
    with KernelTree(kernel.sysfs) as tree:
        yield Host(tree)


def named(host: Host, *scopes: str) -> list[str]:
    return sorted(host.select(scopes).disks)


@pytest.mark.parametrize(
    ("scope", "names"),
    [
        ("all", ["dm-0", "loop0", "nvme0n1", "sda", "sdb", "sdc", "sdd"]),
        ("sda", ["sda"]),
        ("/dev/sdzz/../nothing", None),
        ("sd[ab]", ["sda", "sdb"]),
        ("mpatha", ["dm-0"]),
        ("type:rotational", ["sda", "sdb", "sdc", "sdd"]),
        ("type:solid-state", ["loop0", "nvme0n1"]),
        ("type:nvme", ["nvme0n1"]),
        ("type:loop", ["loop0"]),
        ("type:multipath", ["dm-0"]),
        ("type:scsi", ["sda", "sdb", "sdc", "sdd"]),
        ("vendor:ACME", ["sda", "sdb", "sdc", "sdd"]),
        ("model:Array*", ["sda", "sdb", "sdc", "sdd"]),
        ("port:host0", ["sda", "sdc"]),
        ("port:0000:00:01.0", ["sdb", "sdd"]),
        ("port:0x2100000000000001", ["sdb", "sdd"]),
        ("port:nvme0", ["nvme0n1"]),
        ("lun:sda", ["dm-0", "sda", "sdb"]),
        ("lun:mpatha", ["dm-0", "sda", "sdb"]),
        (f"lun:{WWID}", ["dm-0", "sda", "sdb"]),
        ("lun:naa.*bb", ["sdc", "sdd"]),
        ("lun:loop0", None),
        ("type:floppy", None),
        ("vendor:Nobody", None),
        ("port:host9", None),
        ("../../etc", None),
        ("sda/../sdb", None),
        ("sd", None),
        ("", None),
    ],
)
def test_scopes_name_disks(host: Host, scope: str, names: list[str] | None) -> None:
    if names is None:
        with pytest.raises(UsageError, match="scope '"):
            host.select([scope])
    else:
        assert named(host, scope) == names


def test_a_subsystem_is_named_by_its_heads_and_its_paths(tmp_path: Path) -> None:
    kernel = FakeKernel(tmp_path)
    kernel.add(
        FakeDisk("nvme0n1", 259, 0, at="virtual/nvme-subsystem/nvme-subsys0/nvme0n1"),
        FakeDisk("nvme0c1n1", 259, 1, at="pci0000:00/0000:00:05.0/nvme/nvme1/nvme0c1n1"),
    )
    kernel.add_class("nvme-subsystem", "nvme-subsys0", "virtual/nvme-subsystem/nvme-subsys0", iopolicy="numa")
    link = kernel.sysfs / "devices/virtual/nvme-subsystem/nvme-subsys0/nvme1"
    link.symlink_to("../../../pci0000:00/0000:00:05.0/nvme/nvme1")
    with KernelTree(kernel.sysfs) as tree:
        host = Host(tree)
        for scope in ("nvme0n1", "nvme0c1n1", "all"):
            targets = host.targets(BY_ID["iopolicy"], host.select([scope]))
            assert [target.name for target in targets] == ["nvme-subsys0"]


def test_connections_are_named_by_the_place_of_a_path_and_heads_have_all(tmp_path: Path) -> None:
    kernel = FakeKernel(tmp_path)
    subsystem = "virtual/nvme-subsystem/nvme-subsys0"
    kernel.add(
        FakeDisk("nvme0n1", 259, 0, at=f"{subsystem}/nvme0n1"),
        FakeDisk("nvme0c1n1", 259, 1, at="virtual/nvme-fabrics/ctl/nvme1/nvme0c1n1"),
        FakeDisk("sda", 8, 0, at="pci0000:00/host3/rport-3:0-5/target3:0:5/3:0:5:0/block/sda"),
    )
    kernel.add_class("nvme-subsystem", "nvme-subsys0", subsystem, iopolicy="numa")
    kernel.add_class("nvme", "nvme1", "virtual/nvme-fabrics/ctl/nvme1", ctrl_loss_tmo="off", reconnect_delay="10")
    place = "pci0000:00/host3/rport-3:0-5/fc_remote_ports/rport-3:0-5"
    kernel.add_class("fc_remote_ports", "rport-3:0-5", place, dev_loss_tmo="30", fast_io_fail_tmo="5")
    link = kernel.sysfs / f"devices/{subsystem}/nvme1"
    link.symlink_to("../../nvme-fabrics/ctl/nvme1")
    with KernelTree(kernel.sysfs) as tree:
        host = Host(tree)
        loss, ports = BY_ID["ctrl_loss_tmo"], BY_ID["dev_loss_tmo"]
        for scope in ("nvme0n1", "nvme0c1n1", "all"):
            (controller,) = host.targets(loss, host.select([scope]))
            assert controller.name == "nvme1"
        assert loss.present(tree, controller) == "off"
        loss.set(tree, controller, "1200")
        assert loss.present(tree, controller) == "1200"
        loss.set(tree, controller, "off")
        assert tree.read("class/nvme/nvme1/ctrl_loss_tmo") == "-1"
        assert loss.present(tree, controller) == "off"
        (port,) = host.targets(ports, host.select(["sda"]))
        assert ports.present(tree, port) == "30"
        assert host.targets(ports, host.select(["nvme0n1"])) == []


def test_groups_of_v2_with_the_devices_that_are_named_or_limited(kernel: FakeKernel) -> None:
    groups = FakeCgroups(kernel.sysfs)
    number = (kernel.sysfs / "block/sda/dev").read_text().strip()
    groups.put("lab", {}, limits=f"{number} rbps=1 wbps=max riops=max wiops=max\n")
    with KernelTree(kernel.sysfs) as tree:
        host = Host(tree)
        limited = host.targets(BY_ID["io.max.rbps"], host.select(["cgroup:/lab"]))
        assert [(target.name, target.device) for target in limited] == [("/lab sda", number)]
        both = host.targets(BY_ID["io.max.rbps"], host.select(["cgroup:/lab@port:host0"]))
        assert [target.name for target in both] == ["/lab sda", "/lab sdc"]


@pytest.mark.parametrize("path", ["/lab/../..", "lab", "", "/absent", "/..", "/lab/./x", "/link"])
def test_groups_outside_of_the_hierarchy_are_refused(kernel: FakeKernel, path: str) -> None:
    groups = FakeCgroups(kernel.sysfs)
    groups.put("lab", {})
    (groups.root / "link").symlink_to("/etc")
    with KernelTree(kernel.sysfs) as tree, pytest.raises(UsageError, match="scope 'cgroup:"):
        Host(tree).select([f"cgroup:{path}"])
