"""Freed memory goes back to the kernel."""

from __future__ import annotations

import ctypes
import resource
import subprocess
import sys
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


KEPT_AFTER_BLOCKS = """
import ctypes, sys
from engine.syscalls import return_freed_memory
from tests.unit.test_memory import resident_bytes
if sys.argv[1] == "at once":
    return_freed_memory()
C = ctypes.CDLL(None)
C.malloc.restype, C.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
C.free(C.malloc(8 << 20))
before = resident_bytes()
blocks = []
for _ in range(100):
    block = C.malloc(512 << 10)
    ctypes.memset(block, 1, 512 << 10)
    blocks.append(block)
    C.malloc(5000)
for block in blocks:
    C.free(block)
print(resident_bytes() - before)
"""


@pytest.mark.skipif(not hasattr(_C, "malloc_trim"), reason="needs the GNU C library")
@pytest.mark.parametrize(("way", "returned"), [("at once", True), ("as glibc does", False)])
def test_blocks_between_what_stays(way: str, returned: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KEPT_AFTER_BLOCKS, way], capture_output=True, text=True, check=True, timeout=60
    )
    assert (int(done.stdout) < 10 << 20) is returned
