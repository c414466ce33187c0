"""One look at who uses which storage on this host."""

from __future__ import annotations

import os
from collections import defaultdict
from functools import cached_property
from pathlib import Path

from engine.guard.exports import Exports, read_exports
from engine.guard.loops import Loop, read_loops
from engine.guard.mounts import Mount, devices_of, pooled_devices, read_mounts
from engine.guard.overlays import Inode, Overlay, inodes_below, read_overlays
from engine.guard.roots import Roots
from engine.guard.swaps import Swaps, read_swaps
from engine.guard.sysblock import BlockDevice, list_disks, lun_of
from engine.guard.writers import Writers, read_writers


class Census:
    """What the kernel says at one moment; each part is read when first asked for, once for any number of targets.

    Make a new one for every check: it is never refreshed. `OSError` from `mounts` means that nothing can be said about
    mounts, and then nothing may be written.
    """

    def __init__(self, roots: Roots | None = None) -> None:
        self.roots = roots or Roots()

    @cached_property
    def mounts(self) -> list[Mount]:
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
        # mountinfo may call it /dev/root or hide it under an overlay; the root directory itself knows.
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
        """Tell all inodes that are one and the same open file: its own, and those of the layers of an overlay."""
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
        return read_writers(self.roots)

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

    def other_paths(self, disk_folder: Path) -> list[Path]:
        """Find the folders of the other disks that are the same LUN."""
        lun = lun_of(disk_folder)
        return [folder for folder in self._disks_of_lun.get(lun, ()) if folder != disk_folder] if lun else []

    def loop_at(self, device: BlockDevice) -> Loop | None:
        """Find the loop device a disk or partition belongs to."""
        return next((loop for loop in self.loops if loop.device.folder == device.disk_folder), None)
