"""What was found on a target that makes its figures less than they seem, such as space that was never written."""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from engine._native import content
from engine.guard.usage_snapshot import UsageSnapshot
from engine.hostfs.sysblock import BlockDevice, look_up, on_disk, physical_block_bytes, rotational, write_cache
from engine.job.sizes import format_size
from engine.job.spec import JobSpec
from engine.replacing import replace
from engine.text import safe_text

_MAX_SEGMENTS = 4096
_SAMPLE_BYTES = 4096


def unwritten_share(fd: int, size_bytes: int) -> float:
    """Return the share of a file, 0 to 1, that is hole or allocated but never written.

    lseek(2) SEEK_HOLE takes both for holes (ext4, xfs, btrfs, tmpfs). A file of very many pieces is judged by its first
    4,096; 0 where the filesystem cannot report it.
    """
    position, unwritten = 0, 0
    for _ in range(_MAX_SEGMENTS):
        if position >= size_bytes:
            break
        data = _seek(fd, position, os.SEEK_DATA, size_bytes)
        unwritten += data - position
        position = _seek(fd, data, os.SEEK_HOLE, size_bytes) if data < size_bytes else size_bytes
    return unwritten / min(position, size_bytes) if position else 0.0


def _seek(fd: int, position: int, whence: int, size_bytes: int) -> int:
    try:
        return min(os.lseek(fd, position, whence), size_bytes)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return size_bytes
        # No SEEK_DATA here: everything counts as data.
        return position if whence == os.SEEK_DATA else size_bytes


def sampled(fd: int, size_bytes: int, samples: int) -> list[str]:
    """Judge evenly spread 4 KiB samples, those that can be read: zeros, compressible or dense."""
    kinds: list[str] = []
    with mmap.mmap(-1, _SAMPLE_BYTES) as buffer:
        for index in range(samples):
            offset = size_bytes * index // samples // _SAMPLE_BYTES * _SAMPLE_BYTES
            try:
                count = os.preadv(fd, [buffer], offset)
            except OSError:
                continue
            if count:
                kinds.append(content(buffer[:count]))
    return kinds


_MEMORY = ("tmpfs", "ramfs")
_NFS = ("nfs", "nfs4")


def filesystem_notice(usage: UsageSnapshot, fd: int) -> Iterator[str]:
    """Say that a file is in memory, or on a server where others may use it unseen from here."""
    filesystem = usage.filesystems.get(os.fstat(fd).st_dev)
    if filesystem in _MEMORY:
        yield f"on {filesystem}: measures memory, not storage"
    elif filesystem in _NFS:
        yield f"on {filesystem}: measures network and server, too; whether other hosts use the file is not seen here"


def file_notices(usage: UsageSnapshot, fd: int) -> tuple[str, ...]:
    """Notices of an existing file: in memory or on a server, hard links."""
    links = os.fstat(fd).st_nlink
    linked = (f"known under {links} names (hard links)",) if links > 1 else ()
    return (*filesystem_notice(usage, fd), *linked)


def block_notices(usage: UsageSnapshot, device: BlockDevice | None, job: JobSpec) -> tuple[str, ...]:
    """Notices of a device: in use by others, blocks smaller than its own."""
    if device is None:
        return ()
    notices = list(_in_use(usage, device))
    physical = physical_block_bytes(device)
    smallest = min(job.knobs.block_sizes)
    if physical and smallest % physical:
        notices.append(
            f"block {format_size(smallest)} is no multiple of the physical block {format_size(physical)}: "
            "writes of it also read"
        )
    return tuple(notices)


def _in_use(usage: UsageSnapshot, device: BlockDevice) -> Iterator[str]:
    for part in on_disk(device.disk_folder):
        if part.overlaps(device.start_bytes, device.end_bytes):
            text = usage.mounted.get(part.number) or ("is active swap" if part.number in usage.swaps.devices else "")
            if text:
                yield f"{part.node} {safe_text(text)}: shares the disk with its I/O; only ever read"
                return


_PAGE_BYTES = 4096


def reads_block(fd: int) -> bool:
    """Whether the filesystem or driver refuses RWF_NOWAIT (preadv2(2)), as tmpfs and zram do, direct I/O or not.

    A ring must hand every such read to a kernel thread, where it is 3 to 15 times slower than a thread that reads by
    itself. One page is read, if it is in memory.
    """
    with mmap.mmap(-1, _PAGE_BYTES) as page:
        try:
            os.preadv(fd, [page], 0, os.RWF_NOWAIT)
        except OSError as error:
            return error.errno == errno.EOPNOTSUPP
    return False


_SAMPLES = 64
_ALL_SAMPLES = 1024
"""Samples over all targets of a job, so that hundreds of disks do not take minutes to sample."""


class TargetFacts(Struct, frozen=True):
    """Read once, when the target was opened."""

    unwritten_share: float = 0.0
    """Share of a file, 0 to 1: holes, and what was allocated but never written."""
    samples: int = 0
    """Blocks that could be read."""
    zero_share: float = 0.0
    """Share of the samples, 0 to 1."""
    compressible_share: float = 0.0
    """Share of the samples, 0 to 1; zeros are not among them."""
    write_cache: str | None = None
    """`write back` or `write through` of the disk below, None where it is not known."""
    reads_block: bool = False
    """Whether reads through the page cache block (engine.guard.facts)."""
    rotational: bool | None = None
    """Whether the device rotates; None for a file, and where it is not known."""


def file_facts(sysfs: Path, fd: int, size_bytes: int, job: JobSpec) -> TargetFacts:
    """Read the facts of an existing file and of the disk below it."""
    unwritten = unwritten_share(fd, size_bytes)
    disk = look_up(sysfs, os.fstat(fd).st_dev)
    return _facts(disk, fd, size_bytes, job, unwritten)


def block_facts(device: BlockDevice | None, fd: int, size_bytes: int, job: JobSpec) -> TargetFacts:
    """Read the facts of a device."""
    found = _facts(device, fd, size_bytes, job, 0.0)
    return found if device is None else replace(found, rotational=rotational(device))


def made_facts(sysfs: Path, fd: int) -> TargetFacts:
    """Read the facts of the disk below a file that lunscope makes and fills."""
    disk = look_up(sysfs, os.fstat(fd).st_dev)
    return TargetFacts(write_cache=write_cache(disk) if disk else None, reads_block=reads_block(fd))


def _facts(disk: BlockDevice | None, fd: int, size_bytes: int, job: JobSpec, unwritten: float) -> TargetFacts:
    kinds = sampled(fd, size_bytes, max(4, min(_SAMPLES, _ALL_SAMPLES // len(job.targets))))
    return TargetFacts(
        unwritten_share=unwritten,
        samples=len(kinds),
        zero_share=kinds.count("zeros") / len(kinds) if kinds else 0.0,
        compressible_share=kinds.count("compressible") / len(kinds) if kinds else 0.0,
        write_cache=write_cache(disk) if disk else None,
        reads_block=reads_block(fd),
    )
