"""Who uses a device or file that is to be written: one answer in words, or None.

A device counts as used when any device that shares bytes with it is: the device itself, its disk, its partitions, the
same LUN by another path, a loop device over the same file, and what it stands on.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.guard.census import Census
from engine.guard.relatives import Relative, below, sharing
from engine.guard.sysblock import BlockDevice, is_multipath_map, title


class Use(NamedTuple):
    """A use in words, "is mounted on /x (ext4)", and the mend."""

    text: str
    mend: str


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
    return census.holders_of(device) + loops


def _use_above(census: Census, device: BlockDevice, seen: set[int]) -> str:
    """Say what the topmost user does with a device built on the target: ", which is mounted on /x (ext4)"."""
    for part in census.parts_of(device.disk_folder):
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


def _sentence(subject: str, relative: Relative, use: Use) -> Use:
    if not relative.relation:
        return Use(f"{subject} {use.text}", use.mend)
    return Use(f"{subject} is in use: {relative.relation} {title(relative.device)} {use.text}", use.mend)


def _use_of_stack(census: Census, lower: BlockDevice, stack: set[int]) -> tuple[Relative, Use] | None:
    """Find a use of one device under the target by anything that is not part of the target's own stack."""
    own_holders = [higher for higher in census.holders_of(lower) if higher.number in stack]
    # A multipath map takes all of its paths, other volumes a part of their members.
    has_neighbours = bool(own_holders) and not any(map(is_multipath_map, own_holders))
    for relative in sharing(census, lower):
        use = _own_use(census, relative.device.number)
        is_other_path = relative.device.disk_folder != lower.disk_folder and relative.device.number not in stack
        # Other volumes on a shared member are neighbours; whoever holds a plain backing device or another path is not.
        if use is None and (is_other_path or not has_neighbours):
            use = _held_use(census, relative.device, stack)
        if use:
            return relative if relative.relation else Relative(lower, "the device under it,"), use
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
    for relative in sharing(census, device):
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
