"""Devices that share bytes with a target, and exclusive claims of them.

Mounts, swap, dm, md, other volume managers and careful programs claim what they use, in any namespace and for as long
as they use it. The kernel reports that by EBUSY: a device opens with O_EXCL only while it is not claimed (open(2);
block/bdev.c, bd_may_claim). A disk and its partitions exclude each other, partitions of one disk do not.

To check means to hold the claim for some microseconds. Another claim of it in that time gets EBUSY, which is
why the check is rare and never made on the members of the target's own stack, which dm and md claim anew whenever a
path or a mirror half returns. To keep the claim instead would be safer for the bytes, but would keep new paths of a LUN
out of their map.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain
from pathlib import Path

from msgspec import Struct

from engine.guard.usage_snapshot import UsageSnapshot
from engine.hostfs.loops_swaps import Loop
from engine.hostfs.sysblock import BlockDevice, holders, look_up


class Relative(Struct, frozen=True):
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


class OtherDisk(Struct, frozen=True):
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
    for loop, relation in loops_beside(usage, device):
        if parts := tuple(usage.parts_of(loop.device.disk_folder)):
            yield OtherDisk(parts, f"{relation} by another loop device,", is_path=False)


def loops_beside(usage: UsageSnapshot, device: BlockDevice) -> Iterator[tuple[Loop, str]]:
    """List the other loop devices over a loop device's bytes, or over what may be these, and say which."""
    own = usage.loop_at(device)
    for loop in usage.loops if own else ():
        if own and loop is not own and (is_same := usage.share_backing(own, loop)) is not False:
            yield loop, "the same bytes" if is_same else "what may be the same bytes"


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


def stack_of(usage: UsageSnapshot, device: BlockDevice, lowers: Sequence[BlockDevice]) -> set[int]:
    """Return the numbers of all devices that I/O of one passes: itself, `lowers` below it, and disks of partitions."""
    passed = (device, *lowers)
    disks = (usage.parts_of(each.disk_folder)[:1] for each in passed if each.is_partition)
    return {each.number for each in (*passed, *chain.from_iterable(disks))}


Ask = Callable[[BlockDevice], bool]
"""Whether another claim excludes ours; OSError where that cannot be checked."""

_AFTER_THE_CLAIM = frozenset((errno.ENXIO, errno.ENODEV, errno.ENOMEDIUM, errno.EIO, errno.EROFS, errno.ETIMEDOUT))
"""Errors of the driver, which is called after the claim was granted: a dead path, no medium."""
_TRIES = 4
_BETWEEN_TRIES_S = 0.05
"""Programs that only probe (another lunscope, blkid) let go sooner."""


class Probe(Struct, frozen=True):
    """The devices to check for one other path to a target's bytes."""

    asked: tuple[BlockDevice, ...]
    parts: tuple[BlockDevice, ...]
    """Partitions of the disk, if it is checked as a whole: one of them may be what is claimed."""
    overlapping: frozenset[int]
    """Numbers of the partitions that must not be claimed."""
    relation: str


def node_of(device: BlockDevice, devices: Path) -> Path:
    """Return the usual node of a device; sysfs writes `!` for the slashes of a name."""
    return devices / device.name.replace("!", "/")


def is_claimed(device: BlockDevice, devices: Path = Path("/dev")) -> bool:
    """Check whether a device is claimed.

    Raises:
        OSError: it cannot be checked: no node, no permission, no descriptor left.
    """
    node = os.open(node_of(device, devices), os.O_PATH | os.O_CLOEXEC)
    try:
        status = os.fstat(node)
        if not stat.S_ISBLK(status.st_mode) or status.st_rdev != device.number:
            raise FileNotFoundError(errno.ENOENT, "its node in /dev is another device")
        os.close(os.open(f"/proc/self/fd/{node}", os.O_RDONLY | os.O_EXCL | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError as error:
        if error.errno == errno.EBUSY:
            return True
        if error.errno in _AFTER_THE_CLAIM:
            return False
        raise
    finally:
        os.close(node)
    return False


def stays_claimed(device: BlockDevice, devices: Path = Path("/dev")) -> bool:
    """Check until it is free or was claimed at each of several tries.

    Raises:
        OSError: as is_claimed.
    """
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(_BETWEEN_TRIES_S)
        if not is_claimed(device, devices):
            return False
    return True


def probes_of(usage: UsageSnapshot, device: BlockDevice, held: Collection[int]) -> Iterator[Probe]:
    """List what to check for a device that is held by O_EXCL itself; `held` is all that this job has claimed.

    Its own disk and its own partitions cannot be claimed by others meanwhile; partitions that overlap it can, and so
    can every other way to its bytes and to those of the devices below it. What the target's own stack claims is left
    out: bytes there are reached through the target.
    """
    yield from _on_own_disk(usage, device, held)
    yield from _on_other_disks(usage, device, held)
    lowers = below(usage, device)
    stack = stack_of(usage, device, lowers)
    own = {*held, *stack}
    for lower in lowers:
        if not any(holder.number in stack for holder in usage.holders_of(lower)):
            yield from _whole_or_partition(usage, lower, held)
        yield from _on_own_disk(usage, lower, own)
        yield from _on_other_disks(usage, lower, own)


def _on_own_disk(usage: UsageSnapshot, device: BlockDevice, own: Collection[int]) -> Iterator[Probe]:
    if not device.is_partition:
        return
    for part in usage.parts_of(device.disk_folder)[1:]:
        overlaps = part.overlaps(device.start_bytes, device.end_bytes)
        if overlaps and part.number != device.number and part.number not in own:
            yield Probe((part,), (), frozenset(), "an overlapping partition,")


def _whole_or_partition(usage: UsageSnapshot, lower: BlockDevice, held: Collection[int]) -> Iterator[Probe]:
    """Check a device below the target that nothing claims for the target: the backing of a loop device."""
    if lower.number in held:
        return
    parts = () if lower.is_partition else tuple(usage.parts_of(lower.folder)[1:])
    yield Probe((lower,), parts, frozenset(part.number for part in parts), "the device under it,")


def _on_other_disks(usage: UsageSnapshot, device: BlockDevice, own: Collection[int]) -> Iterator[Probe]:
    for disk in other_disks(usage, device):
        if disk.parts[0].number not in own:
            yield _probe_of_disk(disk, device, own)


def _probe_of_disk(disk: OtherDisk, device: BlockDevice, own: Collection[int]) -> Probe:
    whole, *parts = disk.parts
    meant = [part for part in parts if not disk.is_path or part.overlaps(device.start_bytes, device.end_bytes)]
    if device.is_partition and disk.is_path and meant:
        # Claims of the whole disk exclude these, those of other partitions do not.
        asked = tuple(part for part in meant if part.number not in own)
        return Probe(asked, (), frozenset(), disk.relation)
    return Probe((whole,), tuple(parts), frozenset(part.number for part in meant), disk.relation)


def claimed_relative(probe: Probe, held: Collection[int], ask: Ask) -> Relative | None:
    """Check one device; returns the device with a conflicting claim, if there is one.

    Raises:
        OSError: one of the devices cannot be checked.
    """
    for device in probe.asked:
        if device.number not in held and ask(device) and (culprit := _claimed_part(device, probe, held, ask)):
            return Relative(culprit, probe.relation)
    return None


def _claimed_part(device: BlockDevice, probe: Probe, held: Collection[int], ask: Ask) -> BlockDevice | None:
    """Find what is claimed of a disk that as a whole cannot be claimed; None if that is no concern of the target."""
    others = [part for part in probe.parts if part.number not in held]
    claimed = [part for part in others if ask(part)]
    whole_is_free = len(claimed) < len(probe.parts)
    if not whole_is_free:
        # A claim of the whole disk excludes claims of each partition; a use of one shows that it is not the whole.
        whole_is_free = bool(probe.parts) and any(holders(part) for part in claimed)
    in_the_way = [part for part in claimed if part.number in probe.overlapping]
    if whole_is_free:
        return in_the_way[0] if in_the_way else None
    return device
