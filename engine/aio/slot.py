"""One outstanding I/O: its buffer, the call that moves it, and how data get past the page cache."""

from __future__ import annotations

import fcntl
import mmap
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, suppress

import aiofiles.os
import numpy as np

from engine.aio.limits import AioTarget
from engine.aio.plan import PlannedIo
from engine.aio.tally import READ
from engine.job.spec import Mode

WRITE_FLAGS = {
    **dict.fromkeys((Mode.DIRECT, Mode.BUFFERED), 0),
    **dict.fromkeys((Mode.SYNC, Mode.DIRECT_SYNC), os.RWF_SYNC),
    **dict.fromkeys((Mode.DSYNC, Mode.DIRECT_DSYNC), os.RWF_DSYNC),
}
"""Flags of every write (pwritev2(2)), as O_SYNC cannot be turned on an open descriptor (fcntl(2))."""


class OpenFiles:
    """The descriptors of a load's targets, and direct I/O turned on and off on them."""

    def __init__(self, fds: Sequence[int], targets: Sequence[AioTarget]) -> None:
        """Find out which descriptors take direct I/O; nothing may be outstanding."""
        self.fds = fds
        self._targets = targets
        self._refusals = [_direct_refusal(fd) for fd in fds]

    def check_direct(self) -> None:
        """Raise if a target takes no direct I/O.

        Raises:
            OSError: names the file that refuses.
        """
        for target, errno in zip(self._targets, self._refusals, strict=True):
            if errno is not None:
                text = f"{target.name}: direct I/O: {os.strerror(errno)}: this file takes no live change of mode"
                raise OSError(errno, text)

    def turn(self, *, direct: bool) -> None:
        """Turn direct I/O on or off for all targets; nothing may be outstanding."""
        for fd in self.fds:
            _set_direct(fd, direct=direct)

    def write_back(self, waiting: Callable[[int], AbstractContextManager[None]]) -> Iterator[tuple[int, int]]:
        """Put dirty pages onto the medium and out of memory, so that direct I/O meets none; yields target and errno.

        `waiting` is entered with the number of a target while that is written back.
        """
        for position, (fd, target) in enumerate(zip(self.fds, self._targets, strict=True)):
            if not target.writable:
                continue
            try:
                with waiting(position):
                    os.fdatasync(fd)
            except OSError as error:
                yield position, error.errno or 0
            # Advice: pages that stay are invalidated by the writes that meet them.
            with suppress(OSError):
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def _direct_refusal(fd: int) -> int | None:
    """Why a descriptor takes no direct I/O, found by setting and clearing the flag."""
    if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_DIRECT:
        return None
    try:
        _set_direct(fd, direct=True)
    except OSError as error:
        return error.errno
    _set_direct(fd, direct=False)
    return None


def _set_direct(fd: int, *, direct: bool) -> None:
    flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    fcntl.fcntl(fd, fcntl.F_SETFL, flags | os.O_DIRECT if direct else flags & ~os.O_DIRECT)


_PAGE = 4096
_SECTOR = 512

_pread = aiofiles.os.wrap(os.preadv)
_pwrite = aiofiles.os.wrap(os.pwritev)
_fsync = aiofiles.os.wrap(os.fsync)
_fdatasync = aiofiles.os.wrap(os.fdatasync)


class Buffer:
    """Page-aligned memory, as direct I/O wants it, full of bytes that neither compress nor repeat."""

    def __init__(self, length: int, seed: str) -> None:
        self._memory = mmap.mmap(-1, -(-length // _PAGE) * _PAGE)
        self._memory[:] = random.Random(seed).randbytes(len(self._memory))  # noqa: S311 (filler, not a secret)
        self._sectors = np.frombuffer(self._memory, "<u8").reshape(-1, _SECTOR // 8)
        self._offsets = np.arange(0, len(self._memory), _SECTOR, dtype=np.uint64)

    def __len__(self) -> int:
        return len(self._memory)

    def view(self, length: int) -> memoryview:
        """Share the first `length` bytes."""
        return memoryview(self._memory)[:length]

    def stamp(self, offset: int, sequence: int) -> None:
        """Mark every 512 bytes with their offset on the target and a number used once, so that none repeats."""
        self._sectors[:, 0] = offset + self._offsets
        self._sectors[:, 1] = sequence


class Slot:
    """One slot of the queue depth of a target; it has at most one I/O outstanding."""

    def __init__(self, fd: int, seed: str, executor: Executor) -> None:
        self._fd = fd
        self._seed = seed
        self._executor = executor
        self._buffer = Buffer(_PAGE, seed)

    def head(self, length: int) -> bytes:
        """Copy the first page of what an I/O of this length moved."""
        return bytes(self._buffer.view(min(length, _PAGE)))

    async def transfer(self, io: PlannedIo, write_flags: int = 0) -> tuple[int, int]:
        """Read, write or fsync once; returns bytes moved and nanoseconds from submit to reap.

        Raises:
            OSError: the I/O failed.
        """
        if len(self._buffer) < io.length:
            self._buffer = Buffer(io.length, self._seed)
        if io.direction != READ:
            self._buffer.stamp(io.offset, io.sequence)
        submitted_ns = time.monotonic_ns()
        moved = await self._call(io, write_flags)
        return moved, time.monotonic_ns() - submitted_ns

    async def _call(self, io: PlannedIo, write_flags: int) -> int:
        if io.is_fsync:
            await (_fdatasync if io.is_data_only else _fsync)(self._fd, executor=self._executor)
            return 0
        pieces = [self._buffer.view(io.length)]
        if io.direction == READ:
            return await _pread(self._fd, pieces, io.offset, executor=self._executor)
        return await _pwrite(self._fd, pieces, io.offset, write_flags, executor=self._executor)
