"""What a device holds: a known format, other data, or nothing but zeros in all blocks that are sampled.

It samples all of the first and the last 256 KiB, 64 KiB at each distance from both ends that is a power of two, and
256 times 64 KiB in between: the beginning of every 128th part and one more place in each. A device of up to 8 MiB is
read whole. Data that lies between the samples is not seen: any stretch of 1/128 of the device is met, a shorter one
only by chance.
"""

from __future__ import annotations

import errno
import math
import mmap
import os
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping

from msgspec import Struct

from engine.errors import LunscopeError
from engine.guard.finding import Found, reopen
from engine.guard.signatures import find_signatures, signature_ranges

CHUNK_BYTES = 64 * 1024
"""Read at once: a disk needs hardly more time for it than for a sector."""
_END_CHUNKS = 4
_PARTS = 128
_GOLDEN = (math.sqrt(5) - 1) / 2
"""Multiples of it modulo 1 spread evenly: data at regular distances does not fall between all samples."""
_THREADS = 8
"""Reads outstanding at once: disks and networks serve them in little more time than one."""
PATIENCE_S = 10.0
"""A device that takes longer counts as not seen."""

_ZEROS, _ONES = bytes(CHUNK_BYTES), b"\xff" * CHUNK_BYTES
_VERIFIED = b"LUNSCOP1"
"""The first bytes of every 512 that a load with --verify writes (engine/native/src/load/verify/unit.rs)."""


class Content(Struct, frozen=True):
    """What was seen of a device."""

    formats: tuple[str, ...] = ()
    """Known formats."""
    first_byte: int | None = None
    """The first sampled block that is not zero; None if there is none."""
    blocks: int = 0
    """How many blocks of 64 KiB were read."""
    filled_blocks: int = 0
    """How many of them are not all zero."""
    is_erased_flash: bool = False
    """Whether every byte that was read is 0xFF."""
    is_verified: bool = False
    """Whether a load with --verify wrote there."""
    unseen: str = ""
    """Why it could not be read; empty if it could."""

    @property
    def is_blank(self) -> bool:
        """Whether every sample was read, and is zero."""
        return not self.unseen and self.first_byte is None

    @property
    def words(self) -> str:
        """Continue a sentence that begins with the name of the device."""
        if self.formats:
            return f"carries: {', '.join(self.formats)}"
        if self.first_byte is None and self.unseen:
            return f"may hold data: {self.unseen}"
        if self.first_byte is None:
            return f"holds nothing but zeros in all {self.blocks} sampled blocks of 64 KiB"
        share = f"in {self.filled_blocks} of {self.blocks} sampled blocks"
        if self.is_erased_flash:
            return f"holds bytes of 0xFF only, as erased flash may, from byte 0 on ({share})"
        writer = " of an earlier load with --verify" if self.is_verified else ""
        return f"holds data{writer} that is not zero at byte {self.first_byte} ({share})"


def content_of(found: Found, size_bytes: int) -> Content:
    """See what a device holds, by direct reads: another host may have written what our page cache does not show."""
    try:
        fd = _open(found)
    except (OSError, LunscopeError) as error:
        return Content(unseen=f"it cannot be read ({error})")
    try:
        return content_of_open(fd, size_bytes)
    finally:
        os.close(fd)


def _open(found: Found) -> int:
    flags = os.O_RDONLY | os.O_NONBLOCK
    try:
        return reopen(found, flags | os.O_DIRECT)
    except LunscopeError:
        return reopen(found, flags)


def content_of_open(fd: int, size_bytes: int, patience_s: float = PATIENCE_S) -> Content:
    """See what is behind an open descriptor, as far as it can be read in time."""
    wanted = sampled_chunks(size_bytes) | _signature_chunks(size_bytes)
    try:
        chunks = _ChunkReader(fd, size_bytes, sorted(wanted)).chunks(patience_s)
    except OSError as error:
        return Content(unseen=f"it cannot be read ({error.strerror})")
    missing = len(wanted) - len(chunks)
    unseen = f"only {len(chunks)} of {len(wanted)} blocks were read in {patience_s:g} s" if missing else ""
    return _judged(chunks, size_bytes, unseen)


def sampled_chunks(size_bytes: int) -> set[int]:
    """Choose the chunks to sample, by number."""
    count = -(-size_bytes // CHUNK_BYTES)
    return {index for index in _places(count) if 0 <= index < count}


def _places(count: int) -> Iterator[int]:
    yield from range(_END_CHUNKS)
    yield from range(count - _END_CHUNKS, count)
    for power in range(count.bit_length()):
        yield 1 << power
        yield count - 1 - (1 << power)
    for part in range(_PARTS):
        yield count * part // _PARTS
        yield int(count * (part + part * _GOLDEN % 1) / _PARTS)


def _signature_chunks(size_bytes: int) -> set[int]:
    return {
        index
        for start, end in signature_ranges(size_bytes)
        for index in range(start // CHUNK_BYTES, (end - 1) // CHUNK_BYTES + 1)
    }


class _ChunkReader:
    """Reads chunks with several threads, which a device that does not answer keeps without keeping the caller."""

    def __init__(self, fd: int, size_bytes: int, wanted: list[int]) -> None:
        self._size_bytes = size_bytes
        self._left = deque(wanted)
        self._chunks: dict[int, bytes] = {}
        self._error: OSError | None = None
        self._fd = os.dup(fd)
        self._closing = threading.Lock()
        self._open_threads = min(_THREADS, max(len(wanted), 1))

    def chunks(self, patience_s: float) -> Mapping[int, bytes]:
        """Read all of them; those that are missing could not be read in time.

        Raises:
            OSError: the device refuses a read.
        """
        threads = [
            threading.Thread(target=self._read_all, name="lunscope-content", daemon=True)
            for _ in range(self._open_threads)
        ]
        for thread in threads:
            thread.start()
        until_s = time.monotonic() + patience_s
        for thread in threads:
            thread.join(max(0.0, until_s - time.monotonic()))
        self._left.clear()
        if self._error is not None:
            raise self._error
        return dict(self._chunks)

    def _read_all(self) -> None:
        try:
            # Anonymous maps are page-aligned, as direct I/O requires of buffers.
            with mmap.mmap(-1, CHUNK_BYTES) as buffer:
                while self._error is None:
                    index = self._left.popleft()
                    self._chunks[index] = self._read(buffer, index)
        except IndexError:
            return
        except OSError as error:
            self._error = error
        finally:
            with self._closing:
                self._open_threads -= 1
                if not self._open_threads:
                    os.close(self._fd)

    def _read(self, buffer: mmap.mmap, index: int) -> bytes:
        count = os.preadv(self._fd, [buffer], index * CHUNK_BYTES)
        if count < min(CHUNK_BYTES, self._size_bytes - index * CHUNK_BYTES):
            raise OSError(errno.EIO, f"its end is missing from byte {index * CHUNK_BYTES + count} on")
        data = buffer[:count]
        return _ZEROS if data == _ZEROS else data


def _judged(chunks: Mapping[int, bytes], size_bytes: int, unseen: str) -> Content:
    def read(offset: int, length: int) -> bytes:
        first, last = offset // CHUNK_BYTES, (offset + length - 1) // CHUNK_BYTES
        data = b"".join(chunks.get(index, _ZEROS) for index in range(first, last + 1))
        return data[offset - first * CHUNK_BYTES :][:length]

    filled = sorted(index for index, data in chunks.items() if data.count(0) < len(data))
    seen = chunks[filled[0]] if filled else b""
    return Content(
        formats=tuple(find_signatures(read, size_bytes)),
        first_byte=filled[0] * CHUNK_BYTES + len(seen) - len(seen.lstrip(b"\0")) if filled else None,
        blocks=len(chunks),
        filled_blocks=len(filled),
        is_erased_flash=bool(chunks) and all(data == _ONES[: len(data)] for data in chunks.values()),
        is_verified=seen.lstrip(b"\0").startswith(_VERIFIED),
        unseen=unseen,
    )
