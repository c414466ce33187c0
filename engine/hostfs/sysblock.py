"""Block devices as sysfs shows them: disks and partitions, their holders, the devices below, their LUN."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from engine.hostfs.kernel_files import device_text, entries_of, major_minor, read_number, read_text

_SECTOR_BYTES = 512  # sysfs counts in these whatever the device's own blocks (Documentation/ABI/stable/sysfs-block)

_MAJORS, _MINORS = 1 << 12, 1 << 20
"""Device numbers of the kernel (include/linux/kdev_t.h)."""


class BlockDevice(Struct, frozen=True):
    """One disk or partition; the byte range is that on the whole disk."""

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


def parse_device_number(text: str | None) -> int | None:
    """Parse `8:1` as a device number; None for anything else."""
    numbers = major_minor(text)
    if numbers is None or numbers[0] >= _MAJORS or numbers[1] >= _MINORS:
        return None
    return os.makedev(*numbers)


def _describe(folder: Path) -> BlockDevice | None:
    number = parse_device_number(read_text(folder / "dev"))
    if number is None:
        return None
    is_partition = (folder / "partition").exists()
    start = (read_number(folder / "start") or 0) * _SECTOR_BYTES if is_partition else 0
    size = (read_number(folder / "size") or 0) * _SECTOR_BYTES
    return BlockDevice(number, folder.name, folder, folder.parent if is_partition else folder, start, start + size)


def _target_of(link: Path) -> Path:
    """Return the folder a link of sysfs leads to; folders of devices are never reached through a second link.

    Raises:
        OSError: there is no link.
    """
    return Path(os.path.normpath(link.parent / os.readlink(link)))  # noqa: PTH115 - Path.resolve costs ten times as much


def look_up(sysfs: Path, number: int) -> BlockDevice | None:
    """Find a device by its number; None where sysfs does not show it."""
    link = sysfs / "dev" / "block" / device_text(number)
    try:
        return _describe(_target_of(link))
    except OSError:
        return None


def list_disks(sysfs: Path) -> Iterator[Path]:
    """List the folders of all whole disks, hidden NVMe paths included."""
    return map(Path, list_disk_folders(str(sysfs)))


def list_disk_folders(sysfs: str) -> Iterator[str]:
    """List them as text, which takes a fifth of the time."""
    base = f"{sysfs}/block"
    for name in entries_of(base):
        try:
            link = f"{base}/{name}"
            yield os.path.normpath(os.path.join(base, os.readlink(link)))  # noqa: PTH115, PTH118 - as text
        except OSError:
            continue


def on_disk(disk_folder: Path) -> list[BlockDevice]:
    """List the whole disk and its partitions, whose folders begin with the disk's name (block/partitions/core.c)."""
    names = [name for name in entries_of(disk_folder) if name.startswith(disk_folder.name)]
    parts = (disk_folder / name for name in names)
    entries = [disk_folder, *(entry for entry in parts if (entry / "partition").exists())]
    return [device for device in map(_describe, entries) if device is not None]


def _linked(folder: Path) -> list[BlockDevice]:
    links = [folder / name for name in entries_of(folder)]
    return [device for link in links if (device := _describe(_target_of(link))) is not None]


def holders(device: BlockDevice) -> list[BlockDevice]:
    """List the devices built on this one: dm, md, bcache."""
    return _linked(device.folder / "holders")


def slaves(device: BlockDevice) -> list[BlockDevice]:
    """List the devices this one's disk is built on."""
    return _linked(device.disk_folder / "slaves")


def lun_of(disk_folder: Path) -> str | None:
    """Return the world-wide identity of a disk: equal for all paths to one LUN.

    NVMe namespaces have `wwid` (nvme/host/sysfs.c), SCSI disks `device/wwid` from VPD page 0x83 (scsi_sysfs.c), DASD
    `device/uid`.
    """
    for name in ("wwid", "device/wwid", "device/uid"):
        if text := read_text(disk_folder / name):
            return text
    return None


_COMMAND_DEVICES = ("device/scsi_generic/sg*/dev", "device/bsg/*/dev")


def command_devices(disk_folder: Path) -> Iterator[int]:
    """List the character devices that take commands for a disk: sg and bsg of SCSI, ng of an NVMe namespace."""
    files = [file for pattern in _COMMAND_DEVICES for file in disk_folder.glob(pattern)]
    if disk_folder.name.startswith("nvme"):
        files += disk_folder.parent.glob(f"ng{disk_folder.name.removeprefix('nvme')}/dev")
    for file in files:
        number = parse_device_number(read_text(file))
        if number is not None:
            yield number


def title(device: BlockDevice) -> str:
    """Name a device as people know it: the node, with the dm name where there is one."""
    mapped = read_text(device.disk_folder / "dm" / "name")
    return f"{device.node} ({mapped})" if mapped else device.node


def is_multipath_map(device: BlockDevice) -> bool:
    """Whether a device is a map over the paths of a LUN, made by multipathd (its dm uuid begins with `mpath-`)."""
    return (read_text(device.disk_folder / "dm" / "uuid") or "").startswith("mpath-")


def disk_sequence(device: BlockDevice) -> int | None:
    """Read `diskseq`, a number no other disk of this boot ever has (5.15+; ABI/testing/sysfs-block, diskseq)."""
    return read_number(device.disk_folder / "diskseq")


def request_limit(device: BlockDevice) -> int | None:
    """Read `queue/nr_requests` of the whole disk: how many requests its queue takes before submitters wait."""
    return read_number(device.disk_folder / "queue" / "nr_requests")


def write_cache(device: BlockDevice) -> str | None:
    """Read `queue/write_cache` of the whole disk: `write back` is a volatile cache, `write through` none."""
    return read_text(device.disk_folder / "queue" / "write_cache")


def rotational(device: BlockDevice) -> bool | None:
    """Read `queue/rotational` of the whole disk; None where it has none."""
    value = read_number(device.disk_folder / "queue" / "rotational")
    return None if value is None else value != 0


def physical_block_bytes(device: BlockDevice) -> int | None:
    """Read `queue/physical_block_size` of the whole disk: smaller writes cost it a read as well."""
    return read_number(device.disk_folder / "queue" / "physical_block_size")
