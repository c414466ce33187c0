"""Device nodes with the same bytes: one target under two names is refused, several nodes of one LUN only on request."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from engine.errors import UsageError
from engine.guard.claims import below
from engine.guard.finding import Found
from engine.guard.usage_snapshot import UsageSnapshot
from engine.hostfs.kernel_files import read_text
from engine.hostfs.stored_file import stored_file
from engine.hostfs.sysblock import BlockDevice, look_up, lun_of
from engine.replacing import replace
from engine.text import safe_text, whole_number

_StoredRange = tuple[str, str | int, int, int]
"""Something that stores, and the bytes of it that a device shows: two devices with one in common are one LUN."""


class PathFacts(Struct, frozen=True):
    """What path policies need of a device node."""

    cell: int | None
    """NUMA node of its adapter; None where the hardware has none."""
    outstanding: int
    """I/Os in flight on it now, from any issuer."""


def refuse_strangers(usage: UsageSnapshot, nodes: Sequence[Found]) -> None:
    """Make sure that device nodes given as paths of one LUN are just that: same identity, same size, other device.

    A LUN is known by its world-wide name; loop devices by the file or device behind them, and where on it they begin.

    Raises:
        UsageError: names the two that are not, and how they differ.
    """
    devices = [_whole_disk(usage, node) for node in nodes]
    first, stores = devices[0], set(_stores(usage, devices[0]))
    for node, device in zip(nodes[1:], devices[1:], strict=True):
        names = f"{safe_text(nodes[0].path)} and {safe_text(node.path)}"
        twice = [other for other in devices if other.number == device.number]
        if len(twice) > 1:
            raise UsageError(f"{names}: {device.node} is given twice as a path of one LUN: give each device node once")
        if first.end_bytes != device.end_bytes:
            raise UsageError(
                f"{names} are not paths of one LUN: one has {first.end_bytes} bytes, the other {device.end_bytes}"
            )
        if not stores & set(_stores(usage, device)):
            raise UsageError(f"{names} are not paths of one LUN: {_differ(first, device)}")


def _whole_disk(usage: UsageSnapshot, node: Found) -> BlockDevice:
    device = look_up(usage.roots.sysfs, node.status.st_rdev) if node.is_block else None
    if device is None or device.is_partition:
        raise UsageError(f"{safe_text(node.path)}: no whole disk, so it is no path of a LUN: give disks to --lun")
    return device


def _stores(usage: UsageSnapshot, device: BlockDevice) -> Iterator[_StoredRange]:
    if lun := lun_of(device.disk_folder):
        yield "LUN", lun, 0, device.end_bytes
    loop = usage.loop_at(device)
    if loop is None:
        return
    for file in loop.files:
        yield "file", usage.name_of(file), 0, loop.offset_bytes
    if loop.backing_device is not None:
        yield "device", loop.backing_device, 0, loop.offset_bytes


def _differ(first: BlockDevice, other: BlockDevice) -> str:
    names = [lun_of(device.disk_folder) for device in (first, other)]
    if None in names:
        return "nothing says that they are (no wwid in /sys/block, no common file behind loop devices)"
    return f"their world-wide names are {safe_text(str(names[0]))} and {safe_text(str(names[1]))}"


def path_facts(usage: UsageSnapshot, node: Found) -> PathFacts:
    """Read what path policies need of a node."""
    device = look_up(usage.roots.sysfs, node.status.st_rdev)
    if device is None:
        return PathFacts(None, 0)
    return PathFacts(_numa_node(device.disk_folder), _outstanding(device.disk_folder))


def _numa_node(folder: Path) -> int | None:
    """Find `numa_node` of the nearest bus device above a disk; -1 there means none."""
    for parent in folder.parents:
        text = read_text(parent / "numa_node")
        if text is not None:
            return whole_number(text)
    return None


def _outstanding(folder: Path) -> int:
    """Add up reads and writes of `inflight` (Documentation/ABI/stable/sysfs-block)."""
    fields = (read_text(folder / "inflight") or "").split()
    return sum(whole_number(field) or 0 for field in fields)


_END = 1 << 63
_Store = tuple[str, str | int, int]


class _Extent(Struct, frozen=True):
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
        yield _Extent(("file", usage.name_of(file), 0), loop.offset_bytes + start, loop.offset_bytes + end, target)
    backing = look_up(usage.roots.sysfs, loop.backing_device) if loop.backing_device else None
    if backing:
        begin = backing.start_bytes + loop.offset_bytes
        yield from _block_extents(usage, replace(backing, start_bytes=begin + start, end_bytes=begin + end), target)


def _own_extents(usage: UsageSnapshot, found: Found, target: int) -> Iterator[_Extent]:
    if not found.is_block:
        yield _Extent(("file", usage.name_of(stored_file(found.fd)), 0), 0, _END, target)
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
