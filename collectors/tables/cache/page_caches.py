"""Page cache of the targets of the load: how much of each is in memory (cachestat(2), Linux 6.5)."""

from __future__ import annotations

import ctypes
import errno
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from collectors.kernel.identity import storable_name
from collectors.tables.cache.entry import CacheEntry
from collectors.tables.cache.schema import cache_key

_CACHESTAT = 451
"""Number of the system call on all architectures but Alpha (scripts/syscall.tbl)."""
SHARE = 0.01
"""Largest share of time spent on asking: the kernel visits every cached page."""
LEAST_S = 0.5
MOST_TARGETS = 64


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

    Raises:
        OSError: the kernel has no cachestat(2), or this user must not ask.
    """
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    whole, counts = _Range(0, 0), _PageCounts()
    if syscall(_CACHESTAT, descriptor, ctypes.byref(whole), ctypes.byref(counts), 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    page = os.sysconf("SC_PAGE_SIZE")
    return {
        "size_bytes": os.lseek(descriptor, 0, os.SEEK_END),
        "used_bytes": counts.cached * page,
        "dirty_bytes": counts.dirty * page,
        "writeback_bytes": counts.writeback * page,
    }


@dataclass(slots=True)
class _Target:
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
        self._refused = False

    def entries(self) -> Iterator[CacheEntry]:
        """Yield a row for each target; none where the kernel does not say."""
        paths = () if self._refused else tuple(dict.fromkeys(self._paths()))[:MOST_TARGETS]
        for gone in self._targets.keys() - set(paths):
            os.close(self._targets.pop(gone).descriptor)
        for path in paths:
            entry = self._entry(path)
            if entry is not None:
                yield entry

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
                values = page_cache_values(target.descriptor)
                spent_s = self._clock_s() - begun_s
                target.next_s = begun_s + max(LEAST_S, spent_s / SHARE)
                name = storable_name(path)
                target.entry = CacheEntry(cache_key("page cache", name), f"{name} page cache", values)
        except OSError as error:
            self._refused |= error.errno == errno.ENOSYS
            return None
        return target.entry
