"""A snapshot of what uses which storage on this host."""

from __future__ import annotations

import os
import stat
from collections import defaultdict
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from msgspec import Struct, field

from engine.hostfs.kernel_files import Roots
from engine.hostfs.loops_swaps import Loop, Swaps, read_loops, read_swaps
from engine.hostfs.mounts import (
    Inode,
    MountEntry,
    Overlay,
    devices_of,
    inodes_below,
    pooled_devices,
    read_mounts,
    read_overlays,
)
from engine.hostfs.sysblock import BlockDevice, holders, list_disks, lun_of, on_disk, read_text, slaves
from engine.hostfs.writers import Writers, read_writers, writer_notices

_ATTRIBUTES = (
    ("the NVMe target", "kernel/config/nvmet/subsystems/*/namespaces/*/device_path"),
    ("the SCSI target (LIO)", "kernel/config/target/core/*/*/udev_path"),
    ("the SCSI target (SCST)", "kernel/scst_tgt/devices/*/filename"),
)
"""Documentation/nvme, drivers/nvme/target/configfs.c; drivers/target/target_core_configfs.c; scst sysfs."""


class Exports(Struct, frozen=True):
    """Words such as "is exported by the NVMe target" by device number and by (st_dev, st_ino)."""

    devices: dict[int, str] = field(default_factory=dict)
    files: dict[tuple[int, int], str] = field(default_factory=dict)


def read_exports(roots: Roots) -> Exports:
    """Read what the kernel's targets export; nothing where they are not loaded."""
    exports = Exports()
    for server, pattern in _ATTRIBUTES:
        for attribute in roots.sysfs.glob(pattern):
            # SCST adds a [key] line to attributes that were set by hand.
            lines = (read_text(attribute) or "").splitlines()
            if not lines or not lines[0].startswith("/"):
                continue
            try:
                status = Path(lines[0]).stat()
            except OSError:
                continue
            if stat.S_ISBLK(status.st_mode):
                exports.devices[status.st_rdev] = f"is exported by {server}"
            else:
                exports.files[(status.st_dev, status.st_ino)] = f"is exported by {server}"
    return exports


_Known = dict[Path, list[BlockDevice]]


def _once(known: _Known, folder: Path, find: Callable[[], list[BlockDevice]]) -> list[BlockDevice]:
    if folder not in known:
        known[folder] = find()
    return known[folder]


class UsageSnapshot:
    """What the kernel says at one moment; each part is read when first used, once for any number of targets.

    Make a new one for every check: it is never refreshed. `OSError` from `mounts` means that nothing can be said about
    mounts, and then nothing may be written.
    """

    def __init__(self, roots: Roots | None = None, writers: Writers | None = None) -> None:
        """Read from `roots`; `writers` are those already found by a separate scan: that is the slow part."""
        self.roots = roots or Roots()
        self._known_writers = writers
        self._parts: _Known = {}
        self._holders: _Known = {}
        self._slaves: _Known = {}

    @cached_property
    def mounts(self) -> list[MountEntry]:
        """Mounts of all namespaces, our own first."""
        return read_mounts(self.roots)

    @cached_property
    def mounted(self) -> dict[int, str]:
        """Words such as "is mounted on /data (xfs)" by device number."""
        words: dict[int, str] = {}
        for mount in self.mounts:
            for number in devices_of(mount):
                words.setdefault(number, mount.text)
        for number, text in pooled_devices(self.roots.sysfs):
            words.setdefault(number, text)
        # mountinfo may call it /dev/root or hide it under an overlay; stat of the root directory gives it.
        words.setdefault(os.stat("/").st_dev, "carries the root filesystem")  # noqa: PTH116 - symmetrical to fstat
        return words

    @cached_property
    def filesystems(self) -> dict[int, str]:
        """Filesystem type by st_dev, in every namespace: a name may lead into another one (/proc/PID/root)."""
        return {mount.number: mount.filesystem for mount in self.mounts}

    @cached_property
    def _overlays(self) -> list[Overlay]:
        try:
            return read_overlays(self.mounts)
        except OSError:
            return []

    def inodes_of(self, fd: int) -> frozenset[Inode]:
        """List all inodes that are one and the same open file: its own, and those of the layers of an overlay."""
        status = os.fstat(fd)
        path = str(Path(f"/proc/self/fd/{fd}").readlink())
        return inodes_below(self._overlays, path) | {(status.st_dev, status.st_ino)}

    @cached_property
    def swaps(self) -> Swaps:
        """Active swap."""
        return read_swaps(self.roots)

    @cached_property
    def writers(self) -> Writers:
        """Other processes with storage open for writing."""
        return read_writers(self.roots) if self._known_writers is None else self._known_writers

    @cached_property
    def writer_notices(self) -> tuple[str, ...]:
        """Why writers may go unseen, for people; empty where all of them are seen."""
        return writer_notices(self.roots, self.mounts, self.writers)

    @cached_property
    def exports(self) -> Exports:
        """What this host serves to others."""
        return read_exports(self.roots)

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """Attached loop devices."""
        return tuple(read_loops(self.roots, self._overlays))

    @cached_property
    def _disks_of_lun(self) -> dict[str, list[Path]]:
        disks: dict[str, list[Path]] = defaultdict(list)
        for folder in list_disks(self.roots.sysfs):
            if lun := lun_of(folder):
                disks[lun].append(folder)
        return disks

    def parts_of(self, disk_folder: Path) -> list[BlockDevice]:
        """List the whole disk and its partitions."""
        return _once(self._parts, disk_folder, lambda: on_disk(disk_folder))

    def holders_of(self, device: BlockDevice) -> list[BlockDevice]:
        """List the devices built on one: dm, md, bcache."""
        return _once(self._holders, device.folder, lambda: holders(device))

    def slaves_of(self, device: BlockDevice) -> list[BlockDevice]:
        """List the devices one's disk is built on."""
        return _once(self._slaves, device.disk_folder, lambda: slaves(device))

    def other_paths(self, disk_folder: Path) -> list[Path]:
        """Find the folders of the other disks that are the same LUN."""
        lun = lun_of(disk_folder)
        return [folder for folder in self._disks_of_lun.get(lun, ()) if folder != disk_folder] if lun else []

    def loop_at(self, device: BlockDevice) -> Loop | None:
        """Find the loop device a disk or partition belongs to."""
        return self._loop_by_folder.get(device.disk_folder)

    @cached_property
    def _loop_by_folder(self) -> dict[Path, Loop]:
        return {loop.device.folder: loop for loop in self.loops}
