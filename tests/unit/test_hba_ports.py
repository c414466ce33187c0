"""The HBA port of a device, and whether its queue depth may be set, over fake trees: a file is on its file system's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.hostfs.hba_ports import port_of, takes_queue_depth

PCI = "devices/pci0000:00/0000:00:03.0"


@pytest.fixture
def node(tmp_path: Path) -> Path:
    file = tmp_path / "file"
    file.write_bytes(b"x")
    return file


def storage(tmp_path: Path, node: Path, folder: str) -> Path:
    """Make a tree in which a file is stored on the disk of a folder; returns the tree."""
    sysfs, number = tmp_path / "sys", node.stat().st_dev
    disk = sysfs / folder
    disk.mkdir(parents=True)
    text = f"{os.major(number)}:{os.minor(number)}"
    (disk / "dev").write_text(f"{text}\n")
    link = sysfs / "dev/block" / text
    link.parent.mkdir(parents=True)
    link.symlink_to(Path("../..") / folder)
    return sysfs


@pytest.mark.parametrize(
    ("folder", "port"),
    [
        (f"{PCI}/host3/rport-3:0-0/target3:0:0/3:0:0:1/block/sda", "host3"),
        (f"{PCI}/host3/vport-3:0-0/host7/rport-7:0-0/target7:0:0/7:0:0:1/block/sda", "host3"),
        (f"{PCI}/nvme/nvme1/nvme0c1n1", "nvme1"),
        (f"{PCI}/virtio4/block/vda", "virtio4"),
        ("devices/virtual/block/loop0", ""),
        ("devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1", ""),
    ],
)
def test_the_port_is_named_in_the_way_to_the_disk(tmp_path: Path, node: Path, folder: str, port: str) -> None:
    assert port_of(str(node), storage(tmp_path, node, folder)) == port


def test_hosts_of_one_wwpn_are_one_port(tmp_path: Path, node: Path) -> None:
    sysfs = storage(tmp_path, node, f"{PCI}/host3/rport-3:0-0/target3:0:0/3:0:0:1/block/sda")
    host = sysfs / "class/fc_host/host3"
    host.mkdir(parents=True)
    (host / "port_name").write_text("0x10000090fa000001\n")
    assert port_of(str(node), sysfs) == "0x10000090fa000001"
    assert port_of(str(tmp_path / "gone"), sysfs) == ""
    assert port_of(str(node), tmp_path / "no tree") == ""


def test_a_queue_depth_without_a_write_bit_cannot_be_set_by_root_either(tmp_path: Path, node: Path) -> None:
    folder = f"{PCI}/host3/target3:0:0/3:0:0:1/block/sda"
    sysfs = storage(tmp_path, node, folder)
    assert not takes_queue_depth(str(node), sysfs)
    file = sysfs / folder / "device/queue_depth"
    file.parent.mkdir()
    file.write_text("32\n")
    assert takes_queue_depth(str(node), sysfs)
    file.chmod(0o444)
    assert not takes_queue_depth(str(node), sysfs)
