"""What an operator should know of a target before believing its numbers."""

from __future__ import annotations

import os
from collections.abc import Iterator

from engine.guard.census import Census
from engine.guard.sysblock import BlockDevice, on_disk, physical_block_bytes
from engine.job.sizes import format_size
from engine.job.spec import JobSpec
from engine.text import safe_text

_MEMORY = ("tmpfs", "ramfs")


def memory_notice(census: Census, fd: int) -> Iterator[str]:
    """Say that a file lies in memory."""
    filesystem = census.filesystems.get(os.fstat(fd).st_dev)
    if filesystem in _MEMORY:
        yield f"on {filesystem}: measures memory, not storage"


def file_notices(census: Census, fd: int) -> tuple[str, ...]:
    """Notices of an existing file: in memory, hard links."""
    links = os.fstat(fd).st_nlink
    linked = (f"known under {links} names (hard links)",) if links > 1 else ()
    return (*memory_notice(census, fd), *linked)


def block_notices(census: Census, device: BlockDevice | None, job: JobSpec) -> tuple[str, ...]:
    """Notices of a device: in use by others, blocks smaller than its own."""
    if device is None:
        return ()
    notices = list(_in_use(census, device))
    physical = physical_block_bytes(device)
    smallest = min(job.knobs.block_sizes)
    if physical and smallest % physical:
        notices.append(
            f"block {format_size(smallest)} is no multiple of the physical block {format_size(physical)}: "
            "writes of it also read"
        )
    return tuple(notices)


def _in_use(census: Census, device: BlockDevice) -> Iterator[str]:
    for part in on_disk(device.disk_folder):
        if part.overlaps(device.start_bytes, device.end_bytes):
            text = census.mounted.get(part.number) or ("is active swap" if part.number in census.swaps.devices else "")
            if text:
                yield f"{part.node} {safe_text(text)}: shares the disk with its I/O; only ever read"
                return
