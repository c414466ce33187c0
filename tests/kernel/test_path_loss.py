"""Paths to one and the same bytes, one of which goes away under load: nothing that was written is missing."""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path

import numpy as np
import pytest

from engine.job.spec import PathPolicy
from tests import needs
from tests.kernel.backends import ERRORS, FAILING, WRITES, eventually, knobs_of
from tests.kernel.conftest import Storage
from tests.kernel.paths import BACKENDS, PATH_ERRORS, PATH_FAILED, SIZE_BYTES, opened_lun, running_lun

pytestmark = needs.loop
LOOP_SET_STATUS64, LOOP_GET_STATUS64 = 0x4C04, 0x4C05
INFO_BYTES, SIZE_LIMIT_OFFSET = 232, 32
"""struct loop_info64 of linux/loop.h and its lo_sizelimit."""
BLOCK_BYTES = 4096
PASS = SIZE_BYTES // BLOCK_BYTES
"""Writes after which every block was written once."""


def limit(device: str, size_bytes: int) -> None:
    """Let one loop device show so many bytes of its file and others all of them; 0 is all."""
    fd = os.open(device, os.O_RDONLY)
    try:
        info = bytearray(fcntl.ioctl(fd, LOOP_GET_STATUS64, bytes(INFO_BYTES)))
        struct.pack_into("=Q", info, SIZE_LIMIT_OFFSET, size_bytes)
        fcntl.ioctl(fd, LOOP_SET_STATUS64, bytes(info))
    finally:
        os.close(fd)


def places(path: Path) -> list[int]:
    """What the stamps of a file say where they were written: the first word of every sector."""
    return [int(place) for place in np.fromfile(path, np.uint64).reshape(-1, 64)[:, 0]]


def _write_back(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


@pytest.mark.parametrize("policy", list(PathPolicy))
@pytest.mark.parametrize("backend", BACKENDS)
def test_no_write_is_lost_when_a_path_goes_away(backend: str, policy: PathPolicy, storage: Storage) -> None:
    image = storage.image(SIZE_BYTES)
    devices = [storage.loop(backing=image) for _ in range(2)]
    knobs = knobs_of(8, BLOCK_BYTES, read_pct=0.0, rate_iops=4000.0, policy=policy)
    with (
        opened_lun(devices, writable=True) as lun,
        running_lun(backend, lun, knobs, sequential=True) as engine,
    ):

        def writes() -> int:
            return int(engine.counters()[0, WRITES])

        eventually(lambda: writes() > PASS // 8, "the first writes")
        # The first one is the path of those policies that use but one.
        limit(devices[0], 512)
        eventually(lambda: int(engine.path_counters()[0, PATH_FAILED]) == 1, "the path to be left")
        eventually(lambda: writes() >= PASS + 8, "the rest of the file")
    # Stopped before the second pass, which would write again what the first one lost, wherever the machine is not slow.
    assert int(engine.path_counters()[0, PATH_ERRORS]) > 0
    assert engine.counters()[0, [ERRORS, FAILING]].tolist() == [0, 0]
    assert engine.errors() == []
    _write_back(image)
    assert places(image) == list(range(0, SIZE_BYTES, 512))
