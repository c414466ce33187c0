"""Who uses a device or file that is to be written: one answer in words, or None.

A device counts as used when any device that shares bytes with it is: the device itself, its disk, its partitions, the
same LUN by another path, a loop device over the same file, and what it stands on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from engine.guard.census import Census
from engine.guard.loops import Loop
from engine.guard.sysblock import BlockDevice, holders, look_up, on_disk, slaves, title


class Use(NamedTuple):
    """A use in words, "is mounted on /x (ext4)", and the mend."""

    text: str
    mend: str


@dataclass(frozen=True, slots=True)
class _Relative:
    """A device that shares bytes with the target, and how."""

    device: BlockDevice
    relation: str


def _own_use(census: Census, number: int) -> Use | None:
    if text := census.mounted.get(number):
        return Use(text, "unmount it first")
    if number in census.swaps.devices:
        return Use("is active swap", "run swapoff on it first")
    if text := census.exports.devices.get(number):
        return Use(text, "take it out of the target first")
    if text := census.writers.devices.get(number):
        return Use(text, "stop that process first")
    return None


def _above(census: Census, device: BlockDevice) -> list[BlockDevice]:
    """List devices built directly on this one or on a part of it."""
    loops = [loop.device for loop in census.loops if loop.backing_device == device.number]
    return holders(device) + loops


def _use_above(census: Census, device: BlockDevice, seen: set[int]) -> str:
    """Say what the topmost user does with a device built on the target: ", which is mounted on /x (ext4)"."""
    for part in on_disk(device.disk_folder):
        if part.number in seen:
            continue
        seen.add(part.number)
        if use := _own_use(census, part.number):
            return f", which {use.text}"
        for higher in _above(census, part):
            if text := _use_above(census, higher, seen):
                return text
    return ""


def _held_use(census: Census, device: BlockDevice, ignored: set[int]) -> Use | None:
    for higher in _above(census, device):
        if higher.number not in ignored:
            text = f"is held by {title(higher)}{_use_above(census, higher, set())}"
            return Use(text, f"take it out of {title(higher)} first")
    return None


def _sharing(census: Census, device: BlockDevice) -> Iterator[_Relative]:
    """List the device, what overlaps it on its disk, and the same for every other way to its bytes."""
    yield _Relative(device, "")
    for part in on_disk(device.disk_folder):
        if part.number != device.number and part.overlaps(device.start_bytes, device.end_bytes):
            yield _Relative(part, "its partition" if part.is_partition else "its disk")
    for folder in census.other_paths(device.disk_folder):
        for part in on_disk(folder):
            if part.overlaps(device.start_bytes, device.end_bytes):
                yield _Relative(part, "the same LUN by another path,")
    for loop in _loops_beside(census, device):
        for part in on_disk(loop.device.disk_folder):
            yield _Relative(part, "the same bytes by another loop device,")


def _loops_beside(census: Census, device: BlockDevice) -> list[Loop]:
    own = census.loop_at(device)
    return [loop for loop in census.loops if own and loop is not own and loop.shares_backing(own)]


def _directly_below(census: Census, device: BlockDevice) -> list[BlockDevice]:
    loop = census.loop_at(device)
    backing = look_up(census.roots.sysfs, loop.backing_device) if loop and loop.backing_device else None
    return slaves(device) + ([backing] if backing else [])


def below(census: Census, device: BlockDevice) -> list[BlockDevice]:
    """List every device the bytes of this one are stored on, nearest first."""
    found: dict[int, BlockDevice] = {}
    waiting = _directly_below(census, device)
    while waiting:
        lower = waiting.pop(0)
        if lower.number not in found:
            found[lower.number] = lower
            waiting += _directly_below(census, lower)
    return list(found.values())


def _sentence(subject: str, relative: _Relative, use: Use) -> Use:
    if not relative.relation:
        return Use(f"{subject} {use.text}", use.mend)
    return Use(f"{subject} is in use: {relative.relation} {title(relative.device)} {use.text}", use.mend)


def _use_of_stack(census: Census, lower: BlockDevice, stack: set[int]) -> tuple[_Relative, Use] | None:
    """Find a use of one device under the target by anything that is not part of the target's own stack."""
    is_member = any(higher.number in stack for higher in holders(lower))
    for relative in _sharing(census, lower):
        use = _own_use(census, relative.device.number)
        is_other_path = relative.device.disk_folder != lower.disk_folder and relative.device.number not in stack
        # Other volumes on a shared member are neighbours; whoever holds a plain backing device or another path is not.
        if use is None and (is_other_path or not is_member):
            use = _held_use(census, relative.device, stack)
        if use:
            return relative if relative.relation else _Relative(lower, "the device under it,"), use
    return None


def _below_use(census: Census, subject: str, device: BlockDevice) -> Use | None:
    lowers = below(census, device)
    stack = {device.number, *(lower.number for lower in lowers)}
    for lower in lowers:
        if found := _use_of_stack(census, lower, stack):
            return _sentence(subject, *found)
    loop = census.loop_at(device)
    if loop and (use := file_use(census, loop.files, ignore_loops=True)):
        return Use(f"{subject} is in use: its backing file {loop.backing_path} {use.text}", use.mend)
    return None


def block_use(census: Census, subject: str, device: BlockDevice) -> Use | None:
    """Find who uses a block device or anything that shares bytes with it; a sentence about `subject`."""
    for relative in _sharing(census, device):
        use = _own_use(census, relative.device.number) or _held_use(census, relative.device, {device.number})
        if use:
            return _sentence(subject, relative, use)
    return _below_use(census, subject, device)


def file_use(census: Census, files: frozenset[tuple[int, int]], *, ignore_loops: bool = False) -> Use | None:
    """Find who uses a regular file, given as (st_dev, st_ino)."""
    if files & census.swaps.files:
        return Use("is an active swap file", "run swapoff on it first")
    for loop in () if ignore_loops else census.loops:
        if files & loop.files:
            text = f"backs {title(loop.device)}{_use_above(census, loop.device, set())}"
            return Use(text, f"detach it first (losetup -d {loop.device.node})")
    for file in files:
        if exported := census.exports.files.get(file):
            return Use(exported, "take it out of the target first")
        if written := census.writers.files.get(file):
            return Use(written, "stop that process first")
    return None
