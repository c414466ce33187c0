"""One outstanding I/O: its buffer, and the call that moves it."""

from __future__ import annotations

import mmap
import os
import random
import time
from concurrent.futures import Executor

import aiofiles.os
import numpy as np

from engine.aio.plan import PlannedIo
from engine.aio.tally import READ

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
