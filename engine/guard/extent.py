"""How many bytes of a target the load may use."""

from __future__ import annotations

import math
import os
import stat

from engine.errors import UsageError
from engine.hostfs import blockio
from engine.job.sizes import format_size, human_size
from engine.job.spec import JobSpec, Mode
from engine.syscalls import statx
from engine.text import safe_text

_FILE_DIO_ALIGN = 4096
"""Safe on every disk in use, for kernels before 6.1 that do not say what a file needs."""

MODE_FLAGS = {mode: os.O_DIRECT if mode.is_direct else 0 for mode in Mode}
"""Flags of open(2) per mode; sync and dsync flag each write, as that can be turned on an open descriptor."""


def align_bytes(fd: int, name: str, mode: Mode) -> int:
    """Return the alignment of offsets, lengths and buffers in a mode; 1 through the cache.

    Raises:
        UsageError: the file does no direct I/O.
    """
    if not mode.is_direct:
        return 1
    if _refuses_direct(fd):
        raise UsageError(f"{safe_text(name)}: its filesystem refuses direct I/O: use --mode buffered")
    return direct_align_bytes(fd)


def direct_align_bytes(fd: int) -> int:
    """Return the alignment that direct I/O needs: STATX_DIOALIGN, else the logical block; 1 where it is refused."""
    status = statx(fd)
    if status.dio_offset_align is not None and status.dio_memory_align is not None:
        return max(status.dio_offset_align, status.dio_memory_align, 1)
    return blockio.logical_block_bytes(fd) if stat.S_ISBLK(status.mode) else _FILE_DIO_ALIGN


def _refuses_direct(fd: int) -> bool:
    return statx(fd).dio_offset_align == 0


def usable_bytes(name: str, capacity_bytes: int, align_bytes: int, job: JobSpec) -> int:
    """Return where the bytes for the job end: a multiple of the alignment, at least one block after their offset.

    Raises:
        UsageError: the target is empty, smaller than --size or than one block, or a size or the offset does not fit the
            alignment.
    """
    shown = safe_text(name)
    blocks = list(job.knobs.block_sizes)
    for block in blocks:
        if block % align_bytes:
            raise UsageError(
                f"--bs {format_size(block)}: {shown} needs multiples of {format_size(align_bytes)} for direct I/O: "
                "use such a size, or --mode buffered"
            )
    for option, start in (("offset", job.offset_bytes), ("align", job.align_bytes or 0)):
        if start % align_bytes:
            raise UsageError(
                f"--{option} {format_size(start)}: {shown} needs multiples of {format_size(align_bytes)} for direct I/O"
            )
    if capacity_bytes == 0:
        raise UsageError(f"{shown}: its size is 0: nothing to read or write there")
    if job.size_bytes is None:
        size = capacity_bytes - capacity_bytes % align_bytes
        if size - job.offset_bytes < max(blocks):
            after = f" after an offset of {format_size(job.offset_bytes)}" if job.offset_bytes else ""
            raise UsageError(
                f"{shown}: {human_size(capacity_bytes)} are less than one block of {format_size(max(blocks))}{after}"
            )
        return size
    check_size(job.size_bytes, blocks)
    end = job.offset_bytes + job.size_bytes
    if end > capacity_bytes:
        from_where = f" from --offset {format_size(job.offset_bytes)}" if job.offset_bytes else ""
        raise UsageError(
            f"--size {format_size(job.size_bytes)}{from_where}: {shown} has only {human_size(capacity_bytes)} "
            f"({capacity_bytes} bytes): give a smaller size, or none to use all of it"
        )
    return end


def check_size(size_bytes: int, blocks: list[int]) -> None:
    """Check a size against the block sizes of the job.

    Raises:
        UsageError: it is no positive multiple of every one of them.
    """
    unit = math.lcm(*blocks)
    if size_bytes <= 0:
        raise UsageError(f"--size {size_bytes}: give at least one block ({format_size(unit)})")
    if size_bytes % unit:
        lower = size_bytes - size_bytes % unit
        nearest = format_size(lower or unit)
        raise UsageError(
            f"--size {format_size(size_bytes)}: not a multiple of the block ({format_size(unit)}): use {nearest}"
        )
