"""Freed memory goes back to the kernel."""

from __future__ import annotations

import ctypes
import resource
from pathlib import Path

import pytest

from engine.syscalls import trim_heap

PIECES, PIECE_BYTES = 20_000, 4096
_C = ctypes.CDLL(None)


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.skipif(not hasattr(_C, "malloc_trim"), reason="needs the GNU C library")
def test_pieces_that_were_freed_below_one_that_was_not() -> None:
    _C.malloc.restype, _C.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    pieces = [_C.malloc(PIECE_BYTES) for _ in range(PIECES)]
    for piece in pieces:
        ctypes.memset(piece, 1, PIECE_BYTES)
    for piece in pieces[:-1]:
        _C.free(piece)
    held = resident_bytes()
    trim_heap()
    given = held - resident_bytes()
    _C.free(pieces[-1])
    assert given > PIECES * PIECE_BYTES / 2
