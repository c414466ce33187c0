"""What uses a device or file that a load wants to write: one use in words, or None.

A device counts as used when any device that shares bytes with it is: the device itself, its disk, its partitions, the
same LUN by another path, a loop device over the same file, and the devices below it.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.guard.claims import Ask, Relative, below, sharing, stack_of
from engine.guard.usage_snapshot import UsageSnapshot
from engine.hostfs.loops_swaps import Loop
from engine.hostfs.stored_file import StoredFile
from engine.hostfs.sysblock import BlockDevice, command_devices, is_multipath_map, title


class Use(NamedTuple):
    """A use in words, "is mounted on /x (ext4)", and the fix."""

    text: str
    fix: str


def _own_use(usage: UsageSnapshot, device: BlockDevice) -> Use | None:
    number = device.number
    if text := usage.mounted.get(number):
        return Use(text, "unmount it first")
    if number in usage.swaps.devices:
        return Use("is active swap", "run swapoff on it first")
    if text := usage.exports.users.of_device(number):
        return Use(text, "take it out of the target first")
    if text := usage.writers.certain.of_device(number):
        return Use(text, "stop that process first")
    if not device.is_partition and (text := _commanded(usage, device)):
        return Use(text, "stop that process first")
    return None


def _commanded(usage: UsageSnapshot, disk: BlockDevice) -> str | None:
    """Say who can send commands to a disk past the block layer."""
    users = usage.writers.certain
    numbers = command_devices(disk.folder) if users.has_character_devices else ()
    words = next(filter(None, map(users.of_character_device, numbers)), None)
    return f"has a device for commands (sg, bsg, ng) that {words}" if words else None


def _above(usage: UsageSnapshot, device: BlockDevice) -> list[BlockDevice]:
    """List devices built directly on this one or on a part of it."""
    loops = [loop.device for loop in usage.loops if loop.backing_device == device.number]
    return usage.holders_of(device) + loops


def _use_above(usage: UsageSnapshot, device: BlockDevice, seen: set[int]) -> str:
    """Say what the topmost user does with a device built on the target: ", which is mounted on /x (ext4)"."""
    for part in usage.parts_of(device.disk_folder):
        if part.number in seen:
            continue
        seen.add(part.number)
        if use := _own_use(usage, part):
            return f", which {use.text}"
        for higher in _above(usage, part):
            if text := _use_above(usage, higher, seen):
                return text
    return ""


def _held_use(usage: UsageSnapshot, device: BlockDevice, ignored: set[int]) -> Use | None:
    for higher in _above(usage, device):
        if higher.number not in ignored:
            text = f"is held by {title(higher)}{_use_above(usage, higher, set())}"
            return Use(text, f"take it out of {title(higher)} first")
    return None


def _sentence(subject: str, relative: Relative, use: Use) -> Use:
    if not relative.relation:
        return Use(f"{subject} {use.text}", use.fix)
    return Use(f"{subject} is in use: {relative.relation} {title(relative.device)} {use.text}", use.fix)


def _use_of_stack(usage: UsageSnapshot, lower: BlockDevice, stack: set[int]) -> tuple[Relative, Use] | None:
    """Find a use of one device under the target by anything that is not part of the target's own stack."""
    own_holders = [higher for higher in usage.holders_of(lower) if higher.number in stack]
    # A multipath map takes all of its paths, other volumes a part of their members.
    has_neighbours = bool(own_holders) and not any(map(is_multipath_map, own_holders))
    for relative in sharing(usage, lower):
        use = _own_use(usage, relative.device)
        is_other_path = relative.device.disk_folder != lower.disk_folder and relative.device.number not in stack
        # Other volumes on a shared member are neighbours; a holder of a plain backing device or of another path is not.
        if use is None and (is_other_path or not has_neighbours):
            use = _held_use(usage, relative.device, stack)
        if use:
            return relative if relative.relation else Relative(lower, "the device under it,"), use
    return None


def _below_use(usage: UsageSnapshot, subject: str, device: BlockDevice) -> Use | None:
    lowers = below(usage, device)
    stack = stack_of(usage, device, lowers)
    for lower in lowers:
        if found := _use_of_stack(usage, lower, stack):
            return _sentence(subject, *found)
    for loop in filter(None, map(usage.loop_at, (device, *lowers))):
        for file in loop.files:
            # Other loop devices over it were found by what they do.
            if use := file_use(usage, file, ignore_loops=True):
                whose = "its backing file" if loop.device.disk_folder == device.disk_folder else "the file under it,"
                return Use(f"{subject} is in use: {whose} {loop.backing_path} {use.text}", use.fix)
    return None


def block_use(usage: UsageSnapshot, subject: str, device: BlockDevice) -> Use | None:
    """Find who uses a block device or anything that shares bytes with it; a sentence about `subject`."""
    for relative in sharing(usage, device):
        use = _own_use(usage, relative.device) or _held_use(usage, relative.device, {device.number})
        if use:
            return _sentence(subject, relative, use)
    return _below_use(usage, subject, device)


def _swap_use(usage: UsageSnapshot, file: StoredFile) -> Use | None:
    if any(usage.same_bytes(file, swap) for swap in usage.swaps.files):
        return Use("is an active swap file", "run swapoff on it first")
    for lost in usage.swaps.lost:
        if file.size_bytes in {None, lost.size_bytes}:
            text = f"may be the active swap file {lost.name}, which has no name in any namespace"
            return Use(text, "run swapoff on it first")
    return None


def _detach(loop: Loop) -> str:
    return f"detach it first (losetup -d {loop.device.node})"


def claimed_use(usage: UsageSnapshot, file: StoredFile, is_claimed: Ask) -> Use | None:
    """Find a claim of a loop device that may be over a file; `file_use` finds those that are.

    Raises:
        OSError: the kernel cannot be asked.
    """
    for loop in usage.loops:
        if usage.is_behind((file,), loop) is None and is_claimed(loop.device):
            return Use(f"may back {title(loop.device)}, which is claimed by the kernel (O_EXCL: busy)", _detach(loop))
    return None


def file_use(usage: UsageSnapshot, file: StoredFile, *, ignore_loops: bool = False) -> Use | None:
    """Find who uses a regular file, by this name or another, or through an overlay."""
    if swap := _swap_use(usage, file):
        return swap
    for loop in () if ignore_loops else usage.loops:
        if (is_behind := usage.is_behind((file,), loop)) is False:
            continue
        above = _use_above(usage, loop.device, set())
        if is_behind or above:
            text = f"{'backs' if is_behind else 'may back'} {title(loop.device)}{above}"
            return Use(text, _detach(loop))
    if mounted := usage.mounted_files.of_file(file, usage.is_overlay):
        return Use(mounted, "unmount it first")
    if exported := usage.exports.users.of_file(file, usage.is_overlay):
        return Use(exported, "take it out of the target first")
    if written := usage.writers.certain.of_file(file, usage.is_overlay):
        return Use(written, "stop that process first")
    return None
