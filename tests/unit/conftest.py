"""Folders in memory, and a probe helper with a reader of it, for the tests of what they say to each other."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from collectors.exact.probe.client import HelperTracer, connect
from tests.unit.probe_server import Helper

MEMORY = Path("/dev/shm")
ROOM_BYTES = 1 << 30


@cache
def _memory_is_usable() -> bool:
    """Whether files in memory have room, and open for direct I/O as on a disk (tmpfs does since Linux 6.6)."""
    try:
        room = os.statvfs(MEMORY)
        with tempfile.NamedTemporaryFile(dir=MEMORY) as file:
            os.close(os.open(file.name, os.O_RDONLY | os.O_DIRECT))
    except OSError:
        return False
    return room.f_bavail * room.f_frsize >= ROOM_BYTES


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder that is deleted with the test, in memory if possible: fake trees are of thousands of files.

    A disk takes twice the CPU to create and to delete them.
    """
    with tempfile.TemporaryDirectory(prefix="lunscope-test-", dir=MEMORY if _memory_is_usable() else None) as folder:
        yield Path(folder)


@pytest.fixture
def helper(tmp_path: Path) -> Iterator[Helper]:
    helper = Helper(tmp_path / "probe.sock")
    yield helper
    helper.end()


@pytest.fixture
def reader(helper: Helper) -> Iterator[HelperTracer]:
    reader = connect(helper.path)
    yield reader
    reader.close()
