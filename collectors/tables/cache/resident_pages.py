"""Pages of a file or device in memory, for kernels without cachestat(2): mincore(2) on a bounded sample of them.

The file is mapped without access, so that asking reads no page and makes none resident.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import random

_SHARED, _NO_ACCESS = 1, 0
_FAILED = ctypes.c_void_p(-1).value
MOST_PAGES = 1 << 16
"""Pages asked for at a time: all of a file of up to 256 MiB with pages of 4 KiB."""
WINDOW_PAGES = 64
"""Neighbouring pages asked for at once; the windows lie at random, one in each equal part of a larger file."""


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


_LOWEST_BIT = bytes(value & 1 for value in range(256))


def _error() -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code))
