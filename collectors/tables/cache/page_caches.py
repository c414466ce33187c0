"""Page cache of the targets of the load: how much of each is in memory.

cachestat(2) of Linux 6.5; before, mincore(2), which does not know what is dirty.
"""

from __future__ import annotations

import ctypes
import errno
import os
import time
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from collectors.kernel.identity import storable_name
from collectors.tables.cache.resident_pages import may_ask, resident_bytes
from collectors.tables.cache.schema import CacheEntry, cache_key
from engine.errors import words_of

_CACHESTAT = 451
"""Number of the system call on all architectures but Alpha (scripts/syscall.tbl)."""
SHARE = 0.01
"""Largest share of time spent on asking: the kernel visits every cached page."""
LEAST_S = 0.5
MOST_TARGETS = 64
_NO_RIGHTS = "only its owner and those who may write it are answered (cachestat(2), mincore(2)): run as one of them"


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
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    page = os.sysconf("SC_PAGE_SIZE")
    return {
        "size_bytes": _size_bytes(descriptor),
        "used_bytes": counts.cached * page,
        "dirty_bytes": counts.dirty * page,
        "writeback_bytes": counts.writeback * page,
    }


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
