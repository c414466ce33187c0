"""What an operator should know of a target before believing its numbers."""

from __future__ import annotations

import os
from collections.abc import Iterator

from engine.guard.census import Census
from engine.guard.emptiness import unwritten_share, zero_share
from engine.guard.sysblock import BlockDevice, on_disk, physical_block_bytes
from engine.job import JobSpec
from engine.sizes import format_size
from engine.text import safe_text

_SAMPLES = 64
_ALL_SAMPLES = 1024
"""Samples over all targets of a job, so that hundreds of disks do not take minutes to look at."""
_WORTH_SAYING = 0.05
_MEMORY = ("tmpfs", "ramfs")


def percent_text(share: float) -> str:
    """Write a share so that neither something becomes 0 nor not-all becomes 100."""
    percent = 100 * share
    return f"{percent:.1f}" if 0 < percent < 1 or 99 < percent < 100 else f"{percent:.0f}"


def memory_notice(census: Census, fd: int) -> Iterator[str]:
    """Say that a file lies in memory."""
    filesystem = census.filesystems.get(os.fstat(fd).st_dev)
    if filesystem in _MEMORY:
        yield f"on {filesystem}: measures memory, not storage"


def _zero_notice(fd: int, size_bytes: int, job: JobSpec) -> Iterator[str]:
    samples = max(4, min(_SAMPLES, _ALL_SAMPLES // len(job.targets)))
    share = zero_share(fd, size_bytes, samples)
    if share is not None and share > _WORTH_SAYING:
        yield f"{percent_text(share)} % of {samples} sampled blocks are zeros: reads of them may never reach storage"


def file_notices(census: Census, fd: int, size_bytes: int, job: JobSpec) -> tuple[str, ...]:
    """Notices of an existing file: in memory, never written, zeros, hard links."""
    notices = list(memory_notice(census, fd))
    unwritten = unwritten_share(fd, size_bytes)
    if unwritten > 0:
        notices.append(f"{percent_text(unwritten)} % never written: reads of it are memory, not storage")
    else:
        notices += _zero_notice(fd, size_bytes, job)
    links = os.fstat(fd).st_nlink
    if links > 1:
        notices.append(f"known under {links} names (hard links)")
    return tuple(notices)


def block_notices(
    census: Census, device: BlockDevice | None, fd: int, size_bytes: int, job: JobSpec
) -> tuple[str, ...]:
    """Notices of a device: in use by others, zeros, blocks smaller than its own."""
    notices: list[str] = []
    if device is not None:
        notices += _in_use(census, device)
        physical = physical_block_bytes(device)
        smallest = min(job.knobs.block_sizes)
        if physical and smallest % physical:
            notices.append(
                f"block {format_size(smallest)} is no multiple of the physical block {format_size(physical)}: "
                "writes of it also read"
            )
    return (*notices, *_zero_notice(fd, size_bytes, job))


def _in_use(census: Census, device: BlockDevice) -> Iterator[str]:
    for part in on_disk(device.disk_folder):
        if part.overlaps(device.start_bytes, device.end_bytes):
            text = census.mounted.get(part.number) or ("is active swap" if part.number in census.swaps.devices else "")
            if text:
                yield f"{part.node} {safe_text(text)}: shares the disk with its I/O; only ever read"
                return
