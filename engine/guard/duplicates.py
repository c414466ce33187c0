"""One target under two names: its bytes would be driven twice, and writes would cross."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from engine.errors import UsageError
from engine.guard.census import Census
from engine.guard.finding import Found
from engine.guard.sysblock import BlockDevice, look_up, lun_of
from engine.guard.usage import below
from engine.guard.words import printable

_END = 1 << 63
_Store = tuple[str, str | int, int]


@dataclass(frozen=True, slots=True)
class _Extent:
    """Bytes on something that stores: a disk, a LUN, a file."""

    store: _Store
    start_bytes: int
    end_bytes: int
    path: str

    def overlaps(self, other: _Extent) -> bool:
        return self.start_bytes < other.end_bytes and other.start_bytes < self.end_bytes


def _block_extents(census: Census, device: BlockDevice, path: str) -> Iterator[_Extent]:
    start, end = device.start_bytes, device.end_bytes
    yield _Extent(("disk", str(device.disk_folder), 0), start, end, path)
    if lun := lun_of(device.disk_folder):
        yield _Extent(("LUN", lun, 0), start, end, path)
    loop = census.loop_at(device)
    for file in loop.files if loop else ():
        yield _Extent(("file", *file), 0, _END, path)
    if loop and loop.backing_device:
        backing = look_up(census.roots.sysfs, loop.backing_device)
        if backing:
            yield from _block_extents(census, backing, path)


def _own_extents(census: Census, found: Found) -> Iterator[_Extent]:
    if not found.is_block:
        yield _Extent(("file", found.status.st_dev, found.status.st_ino), 0, _END, found.path)
    elif device := look_up(census.roots.sysfs, found.status.st_rdev):
        yield from _block_extents(census, device, found.path)
    else:
        yield _Extent(("number", found.status.st_rdev, 0), 0, _END, found.path)


def _lower_extents(census: Census, found: Found) -> Iterator[_Extent]:
    device = look_up(census.roots.sysfs, found.status.st_rdev) if found.is_block else None
    for lower in below(census, device) if device else ():
        yield from _block_extents(census, lower, found.path)


def refuse_duplicates(census: Census, targets: list[Found]) -> None:
    """Compare all targets: links, hard links, partitions and their disk, paths of one LUN, loop and file, map and path.

    Two volumes on one member are two targets; a volume and its member are not.

    Raises:
        UsageError: names both names.
    """
    by_store: dict[_Store, list[_Extent]] = defaultdict(list)
    for found in targets:
        for extent in _own_extents(census, found):
            _refuse_overlap(by_store[extent.store], extent)
            by_store[extent.store].append(extent)
    for found in targets:
        for extent in _lower_extents(census, found):
            _refuse_overlap([other for other in by_store[extent.store] if other.path != found.path], extent)


def _refuse_overlap(others: list[_Extent], extent: _Extent) -> None:
    for other in others:
        if extent.overlaps(other) and extent is not other:
            first, second = printable(other.path), printable(extent.path)
            what = f"the same {extent.store[0]}" if extent.store[0] != "number" else "the same device"
            raise UsageError(f"{first} and {second} are on {what}: give each target once, under one name")
