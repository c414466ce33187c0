"""Devices that share bytes with a target, and in which way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from engine.guard.usage_snapshot import UsageSnapshot
from engine.hostfs.loops import Loop
from engine.hostfs.sysblock import BlockDevice, look_up


@dataclass(frozen=True, slots=True)
class Relative:
    """A device that shares bytes with the target, and how; the relation is empty for the target itself."""

    device: BlockDevice
    relation: str


def sharing(usage: UsageSnapshot, device: BlockDevice) -> Iterator[Relative]:
    """List the device, what overlaps it on its disk, and the same for every other path to its bytes."""
    yield Relative(device, "")
    for part in usage.parts_of(device.disk_folder):
        if part.number != device.number and part.overlaps(device.start_bytes, device.end_bytes):
            yield Relative(part, "its partition" if part.is_partition else "its disk")
    for disk in other_disks(usage, device):
        for part in disk.parts:
            if not disk.is_path or part.overlaps(device.start_bytes, device.end_bytes):
                yield Relative(part, disk.relation)


@dataclass(frozen=True, slots=True)
class OtherDisk:
    """A whole disk that shows the bytes of another one, with its partitions."""

    parts: tuple[BlockDevice, ...]
    """The whole disk first."""
    relation: str
    is_path: bool
    """A path to the same LUN, where the same offsets are the same bytes; a loop device may begin elsewhere."""


def other_disks(usage: UsageSnapshot, device: BlockDevice) -> Iterator[OtherDisk]:
    """List the other disks that show bytes of a device's disk: paths to the same LUN, loop devices over its file."""
    for folder in usage.other_paths(device.disk_folder):
        if parts := tuple(usage.parts_of(folder)):
            yield OtherDisk(parts, "the same LUN by another path,", is_path=True)
    for loop in _loops_beside(usage, device):
        if parts := tuple(usage.parts_of(loop.device.disk_folder)):
            yield OtherDisk(parts, "the same bytes by another loop device,", is_path=False)


def _loops_beside(usage: UsageSnapshot, device: BlockDevice) -> list[Loop]:
    own = usage.loop_at(device)
    return [loop for loop in usage.loops if own and loop is not own and loop.shares_backing(own)]


def _directly_below(usage: UsageSnapshot, device: BlockDevice) -> list[BlockDevice]:
    loop = usage.loop_at(device)
    backing = look_up(usage.roots.sysfs, loop.backing_device) if loop and loop.backing_device else None
    return usage.slaves_of(device) + ([backing] if backing else [])


def below(usage: UsageSnapshot, device: BlockDevice) -> list[BlockDevice]:
    """List every device the bytes of this one are stored on, nearest first."""
    found: dict[int, BlockDevice] = {}
    waiting = _directly_below(usage, device)
    while waiting:
        lower = waiting.pop(0)
        if lower.number not in found:
            found[lower.number] = lower
            waiting += _directly_below(usage, lower)
    return list(found.values())
