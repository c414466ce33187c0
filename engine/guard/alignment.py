"""Which alignment direct I/O needs on an open target."""

from __future__ import annotations

import os
import stat

from engine.errors import UsageError
from engine.guard import blockio
from engine.job.spec import Mode
from engine.syscalls import statx
from engine.text import safe_text

_FILE_DIO_ALIGN = 4096
"""Safe on every disk in use, for kernels before 6.1 that do not say what a file needs."""

MODE_FLAGS = {Mode.DIRECT: os.O_DIRECT, Mode.BUFFERED: 0, Mode.SYNC: 0, Mode.DSYNC: 0}
"""Flags of open(2) per mode; sync and dsync flag each write, as that can be turned on an open descriptor."""


def align_bytes(fd: int, name: str, mode: Mode) -> int:
    """Tell the alignment of offsets, lengths and buffers in a mode; 1 through the cache.

    Raises:
        UsageError: the file does no direct I/O.
    """
    if mode is not Mode.DIRECT:
        return 1
    if _refuses_direct(fd):
        raise UsageError(f"{safe_text(name)}: its filesystem refuses direct I/O: use --mode buffered")
    return direct_align_bytes(fd)


def direct_align_bytes(fd: int) -> int:
    """Tell what direct I/O needs: STATX_DIOALIGN, else the logical block; 1 where it is refused."""
    status = statx(fd)
    if status.dio_offset_align is not None and status.dio_memory_align is not None:
        return max(status.dio_offset_align, status.dio_memory_align, 1)
    return blockio.logical_block_bytes(fd) if stat.S_ISBLK(status.mode) else _FILE_DIO_ALIGN


def _refuses_direct(fd: int) -> bool:
    return statx(fd).dio_offset_align == 0
