"""What cannot be found out about the users of a target: said, and reason enough to ask for --destroy-data.

It concerns devices. Of a file on a filesystem with leases the kernel says exactly whether anything has it open for
writing; one that existed before is not written without --destroy-data anyhow, and one that lunscope makes has no users.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from engine.errors import RefusedError
from engine.guard.claims import below, sharing
from engine.guard.finding import Found, reopen
from engine.guard.usage_snapshot import UsageSnapshot
from engine.hostfs.stored_file import StoredFile, stored_file
from engine.hostfs.sysblock import BlockDevice, look_up, title
from engine.hostfs.writers import has_unseen_writer
from engine.job.spec import Permissions
from engine.text import safe_text


def refuse_unseen(usage: UsageSnapshot, shown: str, number: int, permissions: Permissions) -> None:
    """Refuse to write a device that something may use which cannot be inspected, unless its data may be destroyed.

    Raises:
        RefusedError: names what cannot be inspected.
    """
    reasons = () if permissions.destroy_data else unseen_users(usage, number)
    if reasons:
        raise RefusedError(
            f"{shown}: whether anything else writes to it cannot be found out ({safe_text('; '.join(reasons))}): "
            "add --destroy-data if all of it may be lost"
        )


def unseen_notices(usage: UsageSnapshot, found: Found) -> tuple[str, ...]:
    """Say what may use a target that is written all the same, for people."""
    if found.is_block:
        reasons = unseen_users(usage, found.status.st_rdev)
    else:
        reasons = () if _shows_all_writers(usage, found) else usage.unseen_writers
        if folder := usage.exports.above(stored_file(found.fd)):
            reasons = (*reasons, f"NFS clients may write to it, as {folder} is exported")
    if not reasons:
        return ()
    text = safe_text("; ".join(reasons))
    return (f"not everything that may write to it is visible ({text}): make sure that nothing does",)


def _shows_all_writers(usage: UsageSnapshot, found: Found) -> bool:
    """Whether the kernel answers for a file; an overlay does so only for those who use it through itself."""
    fd = reopen(found, os.O_RDONLY)
    try:
        return has_unseen_writer(fd) is not None and usage.is_overlay(stored_file(fd)) is False
    finally:
        os.close(fd)


def unseen_users(usage: UsageSnapshot, number: int) -> tuple[str, ...]:
    """List what may use a device, or hides whether something does."""
    device = look_up(usage.roots.sysfs, number)
    if device is None:
        return (*usage.unseen_writers, *usage.unseen_namespaces)
    stack = [device, *below(usage, device)]
    return (
        *usage.unseen_writers,
        *usage.unseen_namespaces,
        *usage.exports.unknown,
        *dict.fromkeys(_perhaps(usage, stack)),
    )


def _perhaps(usage: UsageSnapshot, stack: list[BlockDevice]) -> Iterator[str]:
    for relative in (relative for device in stack for relative in sharing(usage, device)):
        if text := usage.writers.possible.of_device(relative.device.number):
            yield f"{title(relative.device)} {text}"
    loops = [loop for device in stack if (loop := usage.loop_at(device))]
    files = [file for loop in loops for file in loop.files]
    for file in files:
        yield from _perhaps_of_file(usage, file)
    others = [loop for loop in usage.loops if loop not in loops]
    for loop in others:
        if loop.is_certain and any(usage.share_backing(own, loop) is None for own in loops):
            yield f"the file behind {title(loop.device)}, {loop.backing_path}, may be the same"
    if unasked := [loop.device.node for loop in others if not loop.is_certain]:
        names = unasked[0] if len(unasked) == 1 else f"{unasked[0]} and {len(unasked) - 1} more loop devices"
        yield f"what is behind {names} cannot be found out: run as root where their nodes are"


def _perhaps_of_file(usage: UsageSnapshot, file: StoredFile) -> Iterator[str]:
    if text := usage.writers.possible.of_file(file, usage.is_overlay):
        yield f"its backing file {text}"
    for lost in usage.swaps.lost:
        yield f"the active swap file {lost.name} is in no namespace"
    if folder := usage.exports.above(file):
        yield f"NFS clients may write to its backing file, as {folder} is exported"
    for users in (usage.writers.certain, usage.mounted_files, usage.exports.users):
        for text in users.perhaps_of_file(file, usage.is_overlay):
            yield f"a file that may be its backing file {text}"
