"""The disks and paths that a scope may name, as sysfs shows them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from engine.hostfs.sysblock import list_disk_folders
from engine.tune.tree import KernelTree

_TRANSPORTS = {
    "virtio": re.compile(r"/virtio[0-9]+/"),
    "fc": re.compile(r"/rport-"),
    "iscsi": re.compile(r"/session[0-9]+/"),
    "sas": re.compile(r"/end_device-"),
    "ata": re.compile(r"/ata[0-9]+/"),
    "usb": re.compile(r"/usb[0-9]+/"),
    "scsi": re.compile(r"/host[0-9]+/"),
    "nvme": re.compile(r"/nvme[^/]*$"),
}
_BY_NAME = {"loop": "loop", "dm": "dm-", "md": "md", "zram": "zram", "null": "nullb", "bcache": "bcache"}
TYPES = ("rotational", "solid-state", "multipath", *_TRANSPORTS, *_BY_NAME)
"""Types of disks; one disk may have several."""
_DISK = {"rotational": "1", "solid-state": "0"}


class Disk(Struct, frozen=True):
    """One whole disk, path or map."""

    name: str
    folder: str
    """Folder of the disk below the root of the tree."""

    def is_type(self, tree: KernelTree, kind: str) -> bool:
        """Whether it is of one of TYPES."""
        if kind in _TRANSPORTS:
            return bool(_TRANSPORTS[kind].search(f"/{self.folder}"))
        if kind in _BY_NAME:
            return self.name.startswith(_BY_NAME[kind]) and self.name[len(_BY_NAME[kind]) :].isdigit()
        if kind == "multipath":
            return self.is_map(tree)
        return tree.read(f"{self.folder}/queue/rotational") == _DISK[kind]

    def is_map(self, tree: KernelTree) -> bool:
        """Whether it is a multipath map: of dm, or the head of an NVMe namespace."""
        is_head = self.name.startswith("nvme") and "/nvme-subsys" in f"/{self.folder}"
        return is_head or (tree.read(f"{self.folder}/dm/uuid") or "").startswith("mpath-")

    def lun(self, tree: KernelTree) -> str:
        """World-wide identity, equal for all paths to one LUN; empty where there is none."""
        for file in ("wwid", "device/wwid", "device/uid"):
            if text := tree.read(f"{self.folder}/{file}"):
                return text
        return ""

    def is_below(self, part: str) -> bool:
        """Whether a part of its path in the device tree, as host3 or a PCI address, has this name."""
        return f"/{part}/" in f"/{self.folder}/"

    def slaves(self, tree: KernelTree) -> list[str]:
        """Names of the devices it is built on."""
        return tree.names(f"{self.folder}/slaves")


def read_disks(tree: KernelTree) -> list[Disk]:
    """List all disks that are there, hidden NVMe paths included."""
    return list(_disks(tree))


def _disks(tree: KernelTree) -> Iterator[Disk]:
    start = len(str(tree.root)) + 1
    for folder in list_disk_folders(str(tree.root)):
        yield Disk(folder.rpartition("/")[2], folder[start:])
