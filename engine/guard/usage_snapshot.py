"""A snapshot of what uses which storage on this host."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

from engine.backend.outstanding import Waits
from engine.hostfs.exports import Exports, read_exports
from engine.hostfs.kernel_files import Roots, device_text, read_text
from engine.hostfs.loops_swaps import Loop, Swaps, read_loops, read_swaps
from engine.hostfs.mounts import (
    MountEntry,
    devices_of,
    pooled_devices,
    read_mounts,
)
from engine.hostfs.namespaces import Namespaces, read_namespaces
from engine.hostfs.stored_file import StoredFile, found_by_name, same_bytes
from engine.hostfs.sysblock import BlockDevice, holders, list_disks, lun_of, on_disk, slaves
from engine.hostfs.users import Users
from engine.hostfs.writers import Writers, add_in_flight, read_writers, unseen_writers
from engine.replacing import replace
from engine.syscalls import OVERLAY_MAGIC, filesystem_magic

_Known = dict[Path, list[BlockDevice]]


def _once(known: _Known, folder: Path, find: Callable[[], list[BlockDevice]]) -> list[BlockDevice]:
    if folder not in known:
        known[folder] = find()
    return known[folder]


_MOUNTS_FILES = ("erofs",)


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
        self._named: list[StoredFile] = []

    @cached_property
    def _namespaces(self) -> Namespaces:
        return read_namespaces(self.roots.procfs)

    @cached_property
    def _namespace_roots(self) -> tuple[str, ...]:
        return tuple(namespace.root for namespace in self._namespaces.seen)

    @cached_property
    def mounts(self) -> list[MountEntry]:
        """Mounts of all namespaces, our own first."""
        return read_mounts(self._namespaces.seen)

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
    def mounted_files(self) -> Users:
        """Files that are mounted without a loop device, as images of EROFS may be (Linux 6.12)."""
        users = Users()
        for mount in self.mounts:
            if mount.filesystem in _MOUNTS_FILES and not os.major(mount.number):
                for status, path in found_by_name(mount.source, self._namespace_roots):
                    users.add(status, path, mount.text)
        return users

    @cached_property
    def filesystems(self) -> dict[int, str]:
        """Filesystem type by st_dev, in every namespace: a name may lead into another one (/proc/PID/root)."""
        return {mount.number: mount.filesystem for mount in self.mounts}

    def is_overlay(self, file: StoredFile) -> bool | None:
        """Whether a file is seen through an overlay; None where that is not known."""
        filesystem = self.filesystems.get(file.device)
        if filesystem is not None:
            return filesystem == "overlay"
        # Layers on several filesystems, and the subvolumes of btrfs, have numbers that no mount has.
        try:
            return filesystem_magic(file.path) == OVERLAY_MAGIC if file.path else None
        except OSError:
            return None

    def same_bytes(self, first: StoredFile, second: StoredFile) -> bool | None:
        """Whether two files are the same one, by whatever overlays; None where that cannot be found out."""
        return same_bytes(first, second, self.is_overlay)

    def name_of(self, file: StoredFile) -> str:
        """Name a file by numbers, by which all names of the same file are equal."""
        meant = next((other for other in self._named if self.same_bytes(file, other)), None)
        if meant is None:
            self._named.append(file)
        return device_text((meant or file).device) + f" {(meant or file).inode}"

    def share_backing(self, first: Loop, second: Loop) -> bool | None:
        """Whether two loop devices show the same bytes of a file or device; None where that cannot be found out."""
        if first.backing_device is not None or second.backing_device is not None:
            return first.backing_device == second.backing_device
        return self.is_behind(first.files, second) if first.overlaps(second) else False

    def is_behind(self, files: Sequence[StoredFile], loop: Loop) -> bool | None:
        """Whether one of the files is that behind a loop device; None where that cannot be found out."""
        found = {self.same_bytes(file, backing) for file in files for backing in loop.files}
        return True if True in found else None if None in found else False

    @cached_property
    def swaps(self) -> Swaps:
        """Active swap."""
        return read_swaps(self.roots, self._namespace_roots)

    @cached_property
    def writers(self) -> Writers:
        """Other processes with storage open for writing."""
        if self._known_writers is not None:
            return self._known_writers
        writers = read_writers(self.roots)
        add_in_flight(writers, self.roots)
        return writers

    @cached_property
    def unseen_writers(self) -> tuple[str, ...]:
        """Why writers may go unseen; empty where all of them are seen."""
        return unseen_writers(self.roots, self.mounts, self.writers)

    @property
    def unseen_namespaces(self) -> tuple[str, ...]:
        """Mount namespaces that show nothing."""
        return self._namespaces.unseen

    @cached_property
    def exports(self) -> Exports:
        """What this host serves to others."""
        return read_exports(self.roots, self._namespace_roots)

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """Attached loop devices."""
        return tuple(self._as_seen(loop) for loop in read_loops(self.roots, self._namespace_roots))

    def _as_seen(self, loop: Loop) -> Loop:
        """Mark the file of a loop device that reads through an overlay whose files may have their bytes elsewhere.

        Who opens such a file for writing has it copied up with its bytes (metacopy in overlayfs.rst).
        """
        if not loop.is_read_only or not self._metadata_overlays:
            return loop
        files = (replace(file, is_metadata=self._may_be_metadata(file.device)) for file in loop.files)
        return replace(loop, files=tuple(files))

    def _may_be_metadata(self, device: int) -> bool:
        # Overlays over several filesystems have further numbers, which no mount shows.
        return device in self._metadata_overlays or device not in self.filesystems

    @cached_property
    def _metadata_overlays(self) -> frozenset[int]:
        """Device numbers of overlays that keep metadata apart; an option is shown where it is not the default."""
        try:
            overlays = [mount for mount in self.mounts if mount.filesystem == "overlay"]
        except OSError:
            return frozenset()
        default = read_text(self.roots.sysfs / "module/overlay/parameters/metacopy") == "Y"
        shown = {mount.number: f",{mount.options}," for mount in overlays}
        return frozenset(
            number
            for number, text in shown.items()
            if ",metacopy=on," in text or (default and ",metacopy=off," not in text)
        )

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


_PROCESSES = "the processes that may use the targets"


def scan_processes(usage: UsageSnapshot, waits: Waits) -> None:
    """Read what all processes use, which takes seconds where there are thousands, and is named meanwhile."""
    with waits.on(_PROCESSES, "scan"):
        usage.writers  # noqa: B018
