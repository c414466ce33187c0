"""Page cache of the targets of the load: how much of each is in memory.

cachestat(2) of Linux 6.5; before, mincore(2) on a bounded sample of the pages, which does not know what is dirty. The
file is mapped without access for it, so that asking reads no page and makes none resident.
"""

from __future__ import annotations

import ctypes
import errno
import itertools
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from collectors.kernel.identity import storable_name
from collectors.tables.cache.schema import CacheEntry, cache_key
from engine.errors import words_of

_CACHESTAT = 451
"""Number of the system call on all architectures but Alpha (scripts/syscall.tbl)."""
SHARE = 0.01
"""Largest share of time spent on asking: the kernel visits every cached page."""
LEAST_S = 0.5
MOST_TARGETS = 64
_NO_RIGHTS = "only its owner and those who may write it are answered (cachestat(2), mincore(2)): run as one of them"
_SHARED, _NO_ACCESS = 1, 0
_FAILED = ctypes.c_void_p(-1).value
MOST_PAGES = 1 << 16
"""Pages asked for at a time: all of a file of up to 256 MiB with pages of 4 KiB."""
WINDOW_PAGES = 64
"""Neighbouring pages asked for at once; the windows lie at random, one in each equal part of a larger file."""
_LOWEST_BIT = bytes(value & 1 for value in range(256))


class _Range(ctypes.Structure):
    _fields_ = (("offset", ctypes.c_uint64), ("length", ctypes.c_uint64))


class _PageCounts(ctypes.Structure):
    """struct cachestat (include/uapi/linux/mman.h), in pages."""

    _fields_ = (
        ("cached", ctypes.c_uint64),
        ("dirty", ctypes.c_uint64),
        ("writeback", ctypes.c_uint64),
        ("evicted", ctypes.c_uint64),
        ("recently_evicted", ctypes.c_uint64),
    )


def page_cache_values(descriptor: int) -> dict[str, int]:
    """Bytes of an open file or block device in the page cache, by raw column.

    What the kernel does not say is left out; what is in memory is an estimate for large files where it has no
    cachestat(2).

    Raises:
        OSError: this user must not ask (EPERM), or the file has no page cache.
    """
    try:
        return _counted(descriptor)
    except OSError as error:
        # A filter of system calls may refuse as EPERM what the kernel does not have.
        if error.errno not in {errno.ENOSYS, errno.EPERM}:
            raise
    if not may_ask(descriptor):
        raise OSError(errno.EPERM, _NO_RIGHTS)
    size_bytes = _size_bytes(descriptor)
    return {"size_bytes": size_bytes, "used_bytes": resident_bytes(descriptor, size_bytes)}


def _size_bytes(descriptor: int) -> int:
    return os.lseek(descriptor, 0, os.SEEK_END)


def _counted(descriptor: int) -> dict[str, int]:
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    whole, counts = _Range(0, 0), _PageCounts()
    if syscall(_CACHESTAT, descriptor, ctypes.byref(whole), ctypes.byref(counts), 0) != 0:
        raise _error()
    page = os.sysconf("SC_PAGE_SIZE")
    return {
        "size_bytes": _size_bytes(descriptor),
        "used_bytes": counts.cached * page,
        "dirty_bytes": counts.dirty * page,
        "writeback_bytes": counts.writeback * page,
    }


def may_ask(descriptor: int) -> bool:
    """Whether mincore(2) answers truly: to the owner of a file and to those who may write it, since Linux 5.2.

    To all others it says that everything is in memory (can_do_mincore of mm/mincore.c).
    """
    return os.fstat(descriptor).st_uid == os.geteuid() or os.access(
        f"/proc/self/fd/{descriptor}", os.W_OK, effective_ids=True
    )


def resident_bytes(descriptor: int, size_bytes: int, seed: int = 0) -> int:
    """Count, or estimate from a sample, how many bytes are in memory; of one size and seed the sample is the same.

    Raises:
        OSError: it cannot be mapped, or the kernel does not answer.
    """
    page = os.sysconf("SC_PAGE_SIZE")
    pages = -(-size_bytes // page)
    if not pages:
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64)
    start = libc.mmap(None, pages * page, _NO_ACCESS, _SHARED, descriptor, 0)
    if start == _FAILED:
        raise _error()
    try:
        asked = resident = 0
        for first, count in windows(pages, seed):
            asked += count
            resident += _resident_pages(libc, start + first * page, count, page)
    finally:
        libc.munmap(ctypes.c_void_p(start), ctypes.c_size_t(pages * page))
    return min(size_bytes, round(pages * resident / asked) * page)


def windows(pages: int, seed: int) -> list[tuple[int, int]]:
    """First page and number of pages of each part of a file to ask for, in order."""
    if pages <= MOST_PAGES:
        return [(0, pages)]
    chance, parts = random.Random(seed), MOST_PAGES // WINDOW_PAGES  # noqa: S311 - where a sample is taken
    bounds = [pages * part // parts for part in range(parts + 1)]
    return [(chance.randint(first, end - WINDOW_PAGES), WINDOW_PAGES) for first, end in itertools.pairwise(bounds)]


def _resident_pages(libc: ctypes.CDLL, address: int, count: int, page: int) -> int:
    answer = (ctypes.c_ubyte * count)()
    if libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(count * page), answer):
        raise _error()
    # The lowest bit says it, the others are reserved.
    return sum(bytes(answer).translate(_LOWEST_BIT))


def _error() -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code))


class _Target(Struct):
    descriptor: int
    entry: CacheEntry | None = None
    next_s: float = 0.0


class PageCaches:
    """Reads the page cache of each target, the less often the longer it takes; in between the last values stay."""

    def __init__(self, paths: Callable[[], Sequence[str]], clock_s: Callable[[], float] = time.monotonic) -> None:
        """Open nothing yet; `paths` are the targets of the load that runs now."""
        self._paths = paths
        self._clock_s = clock_s
        self._targets: dict[str, _Target] = {}
        self._reported: set[str] = set()
        self._new: list[str] = []

    def entries(self) -> Iterator[CacheEntry]:
        """Yield a row for each target; without what is in memory where this user must not ask."""
        paths = tuple(dict.fromkeys(self._paths()))[:MOST_TARGETS]
        for gone in self._targets.keys() - set(paths):
            os.close(self._targets.pop(gone).descriptor)
        for path in paths:
            entry = self._entry(path)
            if entry is not None:
                yield entry

    def take_unknown(self) -> list[str]:
        """Return once why the page cache of a target is not known, a line each."""
        new, self._new = self._new, []
        return new

    def close(self) -> None:
        """Close the targets."""
        for target in self._targets.values():
            os.close(target.descriptor)
        self._targets = {}

    def _entry(self, path: str) -> CacheEntry | None:
        target = self._targets.get(path)
        try:
            if target is None:
                # A reader of its own: asking must not depend on the load, which may close its files at any time.
                target = _Target(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))
                self._targets[path] = target
            begun_s = self._clock_s()
            if begun_s >= target.next_s:
                values = self._values(path, target.descriptor)
                spent_s = self._clock_s() - begun_s
                target.next_s = begun_s + max(LEAST_S, spent_s / SHARE)
                name = storable_name(path)
                target.entry = CacheEntry(cache_key("page cache", name), f"{name} page cache", values)
        except OSError:
            return None
        return target.entry

    def _values(self, path: str, descriptor: int) -> dict[str, int]:
        """Read what is known; that less is known is reported once for each target.

        Raises:
            OSError: the target has no page cache.
        """
        try:
            return page_cache_values(descriptor)
        except OSError as error:
            if error.errno != errno.EPERM:
                raise
            if path not in self._reported:
                self._reported.add(path)
                self._new.append(f"page cache of {storable_name(path)} is not known: {words_of(error)}")
            return {"size_bytes": _size_bytes(descriptor)}
