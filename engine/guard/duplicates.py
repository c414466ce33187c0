"""One target under two names: its bytes would be driven twice, and writes would cross."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

from engine.errors import UsageError
from engine.guard.finding import Found
from engine.guard.relatives import below
from engine.guard.usage_snapshot import UsageSnapshot
from engine.hostfs.sysblock import BlockDevice, look_up, lun_of
from engine.text import safe_text

_END = 1 << 63
_Store = tuple[str, str | int, int]


@dataclass(frozen=True, slots=True)
class _Extent:
    """Bytes on something that stores: a disk, a LUN, a file."""

    store: _Store
    start_bytes: int
    end_bytes: int
    target: int
    """Position in the list of targets."""

    def overlaps(self, other: _Extent) -> bool:
        return self.start_bytes < other.end_bytes and other.start_bytes < self.end_bytes


def _block_extents(usage: UsageSnapshot, device: BlockDevice, target: int) -> Iterator[_Extent]:
    start, end = device.start_bytes, device.end_bytes
    yield _Extent(("disk", str(device.disk_folder), 0), start, end, target)
    if lun := lun_of(device.disk_folder):
        yield _Extent(("LUN", lun, 0), start, end, target)
    loop = usage.loop_at(device)
    if loop is None:
        return
    for file in loop.files:
        yield _Extent(("file", *file), loop.offset_bytes + start, loop.offset_bytes + end, target)
    backing = look_up(usage.roots.sysfs, loop.backing_device) if loop.backing_device else None
    if backing:
        begin = backing.start_bytes + loop.offset_bytes
        yield from _block_extents(usage, replace(backing, start_bytes=begin + start, end_bytes=begin + end), target)


def _own_extents(usage: UsageSnapshot, found: Found, target: int) -> Iterator[_Extent]:
    if not found.is_block:
        for inode in usage.inodes_of(found.fd):
            yield _Extent(("file", *inode), 0, _END, target)
    elif device := look_up(usage.roots.sysfs, found.status.st_rdev):
        yield from _block_extents(usage, device, target)
    else:
        yield _Extent(("device", found.status.st_rdev, 0), 0, _END, target)


def _member_extents(usage: UsageSnapshot, found: Found, target: int) -> Iterator[_Extent]:
    device = look_up(usage.roots.sysfs, found.status.st_rdev) if found.is_block else None
    if device is None or usage.loop_at(device):
        return
    for lower in below(usage, device):
        yield from _block_extents(usage, lower, target)


def refuse_duplicates(usage: UsageSnapshot, targets: list[list[Found]]) -> None:
    """Compare all targets: links, hard links, partitions and their disk, paths of one LUN, loop and file, map and path.

    Two volumes on one member are two targets; a volume and its member are not. The nodes of one target are its paths
    and not compared with each other.

    Raises:
        UsageError: names both names.
    """
    by_store: dict[_Store, list[_Extent]] = defaultdict(list)
    nodes = [(position, node) for position, target in enumerate(targets) for node in target]
    for position, found in nodes:
        for extent in _own_extents(usage, found, position):
            _refuse_overlap(targets, by_store[extent.store], extent)
            by_store[extent.store].append(extent)
    for position, found in nodes:
        for extent in _member_extents(usage, found, position):
            _refuse_overlap(targets, by_store.get(extent.store, []), extent)


def _refuse_overlap(targets: list[list[Found]], others: list[_Extent], extent: _Extent) -> None:
    for other in others:
        if other.target != extent.target and extent.overlaps(other):
            first, second = sorted((other.target, extent.target))
            names = f"{safe_text(targets[first][0].path)} and {safe_text(targets[second][0].path)}"
            raise UsageError(f"{names} are on the same {extent.store[0]}: give each target once, under one name")
