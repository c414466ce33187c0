"""Block devices as sysfs shows them: disks and partitions, what holds them, what they stand on, which LUN they are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.kernel_names import device_text

_SECTOR_BYTES = 512  # sysfs counts in these whatever the device's own blocks (Documentation/ABI/stable/sysfs-block)


@dataclass(frozen=True, slots=True)
class BlockDevice:
    """One disk or partition; the byte range is its place on the whole disk."""

    number: int
    name: str
    folder: Path
    disk_folder: Path
    start_bytes: int
    end_bytes: int

    @property
    def node(self) -> str:
        """Its usual device node; sysfs writes `!` for the slashes of a name."""
        return "/dev/" + self.name.replace("!", "/")

    @property
    def is_partition(self) -> bool:
        """Whether it is a part of a larger disk."""
        return self.folder != self.disk_folder

    def overlaps(self, start_bytes: int, end_bytes: int) -> bool:
        """Whether it covers any byte of a range of its disk."""
        return self.start_bytes < end_bytes and start_bytes < self.end_bytes


def read_text(path: Path) -> str | None:
    """Return the content of a small kernel file without the line end, None if there is none or it cannot be read."""
    try:
        return path.read_text(errors="surrogateescape").strip()
    except OSError:
        return None


def read_number(path: Path) -> int | None:
    """Return the number in a small kernel file, None if there is none."""
    text = read_text(path)
    return int(text) if text is not None and text.isdigit() else None


def parse_device_number(text: str | None) -> int | None:
    """Parse `8:1`; None for anything else."""
    major, _, minor = (text or "").partition(":")
    return os.makedev(int(major), int(minor)) if major.isdigit() and minor.isdigit() else None


def _describe(folder: Path) -> BlockDevice | None:
    number = parse_device_number(read_text(folder / "dev"))
    if number is None:
        return None
    is_partition = (folder / "partition").exists()
    start = (read_number(folder / "start") or 0) * _SECTOR_BYTES if is_partition else 0
    size = (read_number(folder / "size") or 0) * _SECTOR_BYTES
    return BlockDevice(number, folder.name, folder, folder.parent if is_partition else folder, start, start + size)


def look_up(sysfs: Path, number: int) -> BlockDevice | None:
    """Find a device by its number; None where sysfs does not show it."""
    link = sysfs / "dev" / "block" / device_text(number)
    try:
        return _describe(link.resolve(strict=True))
    except OSError:
        return None


def list_disks(sysfs: Path) -> Iterator[Path]:
    """List the folders of all whole disks, hidden NVMe paths included."""
    try:
        names = sorted((sysfs / "block").iterdir())
    except OSError:
        return
    for link in names:
        try:
            yield link.resolve(strict=True)
        except OSError:
            continue


def on_disk(disk_folder: Path) -> list[BlockDevice]:
    """List the whole disk and its partitions."""
    try:
        entries = [disk_folder, *(entry for entry in sorted(disk_folder.iterdir()) if (entry / "partition").exists())]
    except OSError:
        return []
    return [device for device in map(_describe, entries) if device is not None]


def _linked(folder: Path) -> list[BlockDevice]:
    try:
        links = sorted(folder.iterdir())
    except OSError:
        return []
    return [device for link in links if (device := _describe(link.resolve())) is not None]


def holders(device: BlockDevice) -> list[BlockDevice]:
    """List the devices built on this one: dm, md, bcache."""
    return _linked(device.folder / "holders")


def slaves(device: BlockDevice) -> list[BlockDevice]:
    """List the devices this one's disk is built on."""
    return _linked(device.disk_folder / "slaves")


def lun_of(disk_folder: Path) -> str | None:
    """Tell the world-wide identity of a disk: equal for all paths to one LUN.

    NVMe namespaces have `wwid` (nvme/host/sysfs.c), SCSI disks `device/wwid` from VPD page 0x83 (scsi_sysfs.c), DASD
    `device/uid`.
    """
    for name in ("wwid", "device/wwid", "device/uid"):
        if text := read_text(disk_folder / name):
            return text
    return None


def title(device: BlockDevice) -> str:
    """Name a device as people know it: the node, with the dm name where there is one."""
    mapped = read_text(device.disk_folder / "dm" / "name")
    return f"{device.node} ({mapped})" if mapped else device.node


def disk_sequence(device: BlockDevice) -> int | None:
    """Read `diskseq`, a number no other disk of this boot ever has (5.15+; ABI/testing/sysfs-block, diskseq)."""
    return read_number(device.disk_folder / "diskseq")


def request_limit(device: BlockDevice) -> int | None:
    """Read `queue/nr_requests` of the whole disk: how many requests its queue takes before submitters wait."""
    return read_number(device.disk_folder / "queue" / "nr_requests")


def write_cache(device: BlockDevice) -> str | None:
    """Read `queue/write_cache` of the whole disk: `write back` is a volatile cache, `write through` none."""
    return read_text(device.disk_folder / "queue" / "write_cache")


def physical_block_bytes(device: BlockDevice) -> int | None:
    """Read `queue/physical_block_size` of the whole disk: smaller writes cost it a read as well."""
    return read_number(device.disk_folder / "queue" / "physical_block_size")
