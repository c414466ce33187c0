"""Attached loop devices and active swap: what the kernel itself reads and writes.

The kernel names both by a path without the namespace it belongs to, so it is tried in every one; a loop device itself
says which inode is meant.
"""

from __future__ import annotations

import mmap
import os
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from engine.hostfs import blockio
from engine.hostfs.kernel_files import Roots, read_number, read_text, unescape_octal
from engine.hostfs.stored_file import StoredFile, found_by_name, from_statx
from engine.hostfs.sysblock import BlockDevice, list_disks, on_disk
from engine.replacing import replace
from engine.text import whole_number


class LostSwap(Struct, frozen=True):
    """A swap file that no name leads to, as that of a namespace that is gone."""

    name: str
    size_bytes: int
    """What the file has at least."""


class Swaps(Struct, frozen=True):
    """What the kernel swaps to."""

    devices: frozenset[int] = frozenset()
    files: tuple[StoredFile, ...] = ()
    lost: tuple[LostSwap, ...] = ()


def read_swaps(roots: Roots, namespaces: Sequence[str]) -> Swaps:
    """Read /proc/swaps (proc(5)), whose paths are tried below each of `namespaces`; a kernel without it has no swap."""
    devices, files, lost = set(), [], []
    for line in (read_text(roots.procfs / "swaps") or "").splitlines()[1:]:
        name, kind, size_kib, *_ = (*line.split(), "", "")
        # The size is without the page of the header.
        swap = LostSwap(unescape_octal(name), ((whole_number(size_kib) or 0) << 10) + mmap.PAGESIZE)
        named = found_by_name(swap.name, namespaces)
        devices |= {status.rdev for status, _ in named if stat.S_ISBLK(status.mode)}
        found = [one for one in named if stat.S_ISREG(one[0].mode) and one[0].size_bytes >= swap.size_bytes]
        files += [from_statx(*one) for one in found]
        if kind == "file" and not found:
            lost.append(swap)
    return Swaps(frozenset(devices), tuple(files), tuple(lost))


_UNIT_BYTES = 64 * 1024
"""The largest page and filesystem block: one that is written back as a whole undoes a direct write to a part of it."""


class Loop(Struct, frozen=True):
    """One attached loop device; backed by a file or by a device."""

    device: BlockDevice
    backing_path: str
    """Path of the backing file as sysfs has it, by which people know it."""
    files: tuple[StoredFile, ...]
    """The file behind it; where the device could not be asked, all that have its path in some namespace."""
    backing_device: int | None
    offset_bytes: int
    """Offset in the backing at which it begins."""
    is_certain: bool
    """Whether the device was asked."""
    is_read_only: bool = False
    is_range_known: bool = True
    """Whether the kernel says where it begins, and how long it is."""

    def overlaps(self, other: Loop) -> bool:
        """Whether writing to one may change what the other shows, if their files are the same."""
        if not (self.is_range_known and other.is_range_known):
            return True
        return self._first_unit < other._end_unit and other._first_unit < self._end_unit

    @property
    def _first_unit(self) -> int:
        return self.offset_bytes // _UNIT_BYTES

    @property
    def _end_unit(self) -> int:
        return -(-(self.offset_bytes + self.device.end_bytes) // _UNIT_BYTES)


def _backing_of(device: BlockDevice, path: str, node: Path, namespaces: Sequence[str]) -> Loop:
    loop = _told_backing(device, path, node, namespaces)
    is_range_known = read_number(device.folder / "loop" / "offset") is not None and device.end_bytes > 0
    return replace(loop, is_read_only=read_number(device.folder / "ro") == 1, is_range_known=is_range_known)


def _told_backing(device: BlockDevice, path: str, node: Path, namespaces: Sequence[str]) -> Loop:
    offset = read_number(device.folder / "loop" / "offset") or 0
    answer = blockio.loop_backing(str(node), device.number)
    if answer is not None and answer.rdev:
        return Loop(device, path, (), answer.rdev, offset, is_certain=True)
    named = found_by_name(path, namespaces)
    if answer is None:
        numbers = [status.rdev for status, _ in named if stat.S_ISBLK(status.mode)]
        files = [from_statx(*one) for one in named if stat.S_ISREG(one[0].mode)]
        return Loop(device, path, tuple(files), next(iter(numbers), None), offset, is_certain=False)
    meant = [from_statx(*one) for one in named if (one[0].device, one[0].inode) == (answer.device, answer.inode)]
    files = meant[:1] or [StoredFile(answer.device, answer.inode, _size_of_backing(device, offset))]
    return Loop(device, path, tuple(files), None, offset, is_certain=True)


def _size_of_backing(device: BlockDevice, offset_bytes: int) -> int | None:
    """Return how large the file is that a loop device shows to its end; None where it shows a part of it."""
    limit = read_number(device.folder / "loop" / "sizelimit")
    return offset_bytes + device.end_bytes if limit == 0 else None


def read_loops(roots: Roots, namespaces: Sequence[str]) -> Iterator[Loop]:
    """All attached loop devices (block/loop/backing_file in sysfs, then the device itself)."""
    for folder in list_disks(roots.sysfs):
        if folder.name.startswith("loop") and (loop := _asked(folder, roots, namespaces)):
            yield loop


_TIMES, _PAUSE_S = 50, 0.002
"""How often a loop device is asked that does not answer though it may: while it is attached or detached."""


def _asked(folder: Path, roots: Roots, namespaces: Sequence[str]) -> Loop | None:
    """Ask one loop device; None where nothing is behind it, or not any more."""
    loop = None
    for _ in range(_TIMES):
        path = read_text(folder / "loop" / "backing_file")
        if path is None or not (devices := on_disk(folder)):
            return None
        node = roots.devices / devices[0].name
        loop = _backing_of(devices[0], path, node, namespaces)
        if loop.is_certain or not _may_answer(node, devices[0].number):
            return loop
        time.sleep(_PAUSE_S)
    return loop


def _may_answer(node: Path, number: int) -> bool:
    try:
        status = node.stat()
    except OSError:
        return False
    return stat.S_ISBLK(status.st_mode) and status.st_rdev == number and os.access(node, os.R_OK)
