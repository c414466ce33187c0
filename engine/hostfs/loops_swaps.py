"""Attached loop devices and active swap: what the kernel itself reads and writes."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct, field

from engine.hostfs import blockio
from engine.hostfs.kernel_files import Roots, unescape_octal
from engine.hostfs.mounts import Overlay, inodes_below
from engine.hostfs.sysblock import BlockDevice, list_disks, on_disk, read_number, read_text


class Swaps(Struct, frozen=True):
    """What the kernel swaps to."""

    devices: frozenset[int] = field(default_factory=frozenset)
    files: frozenset[tuple[int, int]] = field(default_factory=frozenset)
    """(st_dev, st_ino) of each swap file."""


def read_swaps(roots: Roots) -> Swaps:
    """Read /proc/swaps (proc(5)); a kernel without it has no swap."""
    devices, files = set(), set()
    for line in (read_text(roots.procfs / "swaps") or "").splitlines()[1:]:
        path = unescape_octal(line.split()[0])
        # A path is that of the namespace that called swapon, mostly that of process 1: try both.
        for root in ("", f"{roots.procfs}/1/root"):
            try:
                status = Path(root + path).stat()
            except OSError:
                continue
            if stat.S_ISBLK(status.st_mode):
                devices.add(status.st_rdev)
            else:
                files.add((status.st_dev, status.st_ino))
    return Swaps(frozenset(devices), frozenset(files))


class Loop(Struct, frozen=True):
    """One attached loop device; backed by files (st_dev, st_ino) or by a device."""

    device: BlockDevice
    backing_path: str
    files: frozenset[tuple[int, int]]
    backing_device: int | None
    offset_bytes: int
    """Where on the backing it begins."""

    def shares_backing(self, other: Loop) -> bool:
        """Whether both show the same bytes."""
        return bool(self.files & other.files) or (
            self.backing_device is not None and self.backing_device == other.backing_device
        )


def _attach_facts(roots: Roots, device: BlockDevice, path: str, overlays: Sequence[Overlay]) -> Loop:
    files, backing_device = set(inodes_below(overlays, path)), None
    try:
        status = Path(path).stat()
        if stat.S_ISBLK(status.st_mode):
            backing_device = status.st_rdev
        else:
            files.add((status.st_dev, status.st_ino))
    except OSError:
        pass
    answer = blockio.loop_backing(str(roots.devices / device.name), device.number)
    if answer is not None and answer.rdev:
        files, backing_device = set(), answer.rdev
    elif answer is not None:
        files.add((answer.device, answer.inode))
    offset = read_number(device.folder / "loop" / "offset") or 0
    return Loop(device, path, frozenset(files), backing_device, offset)


def read_loops(roots: Roots, overlays: Sequence[Overlay]) -> Iterator[Loop]:
    """All attached loop devices (block/loop/backing_file in sysfs, then the device itself)."""
    for folder in list_disks(roots.sysfs):
        if not folder.name.startswith("loop"):
            continue
        path = read_text(folder / "loop" / "backing_file")
        if path is not None and (devices := on_disk(folder)):
            yield _attach_facts(roots, devices[0], path, overlays)
