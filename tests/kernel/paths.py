"""Targets with several paths: loop devices over files of their own, so that each path can fail by itself."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from engine._native import LoadEngine, LoadPath, LoadTarget
from engine.backend.protocol import LoadSettings
from engine.job.spec import Knobs
from tests import needs
from tests.kernel.backends import driven

MIB = 1 << 20
SIZE_BYTES = 8 * MIB
MakeLoop = Callable[..., str]

BACKENDS = [pytest.param("uring", marks=needs.io_uring), pytest.param("threads")]
"""Those that drive paths."""

PATH_ERRORS, PATH_IN_FLIGHT, PATH_FAILED, PATH_TARGET = 8, 9, 10, 11
"""Columns of LoadEngine.path_counters, as collectors.tables.load.schema.LOAD_PATH."""


def backing_of(device: str) -> Path:
    """The file behind a loop device."""
    return Path(Path("/sys/block", Path(device).name, "loop/backing_file").read_text().strip())


def break_path(device: str) -> None:
    """Make every I/O of a path fail (EIO)."""
    os.truncate(backing_of(device), 0)


def repair_path(device: str) -> None:
    """Undo `break_path` and `detach_path`."""
    os.truncate(backing_of(device), SIZE_BYTES)
    subprocess.run(["losetup", "--set-capacity", device], check=True)


def detach_path(device: str) -> None:
    """Take the bytes of a path away, as the node of a disk that is gone has none (`del_gendisk` of block/genhd.c)."""
    sectors = Path("/sys/block", Path(device).name, "size")
    while int(sectors.read_text()):
        # Writes on their way make the file grow again before its size is looked at.
        break_path(device)
        subprocess.run(["losetup", "--set-capacity", device], check=True)


@contextmanager
def opened_lun(
    devices: Sequence[str],
    *,
    writable: bool = False,
    weights: Sequence[int] = (),
    preferred: int | None = None,
    cells: Sequence[int | None] = (),
) -> Iterator[LoadTarget]:
    """One target of which every device is a path, for as long as the block lasts."""
    flags = (os.O_RDWR if writable else os.O_RDONLY) | os.O_DIRECT
    with ExitStack() as stack:
        paths = []
        for number, device in enumerate(devices):
            fd = os.open(device, flags)
            stack.callback(os.close, fd)
            paths.append(
                LoadPath(
                    fd,
                    device,
                    weight=weights[number] if weights else 1,
                    preferred=number == preferred,
                    cell=cells[number] if cells else None,
                )
            )
        yield LoadTarget(fd, "LUN", SIZE_BYTES, 512, writable=writable, paths=paths)


@contextmanager
def running_lun(backend: str, lun: LoadTarget, knobs: Knobs, **settings: Any) -> Iterator[LoadEngine]:
    """Drive one target for as long as the block lasts, and see that the books of its paths balance in the end."""
    engine = LoadEngine([lun], knobs, LoadSettings(backend="uring" if backend == "uring" else "threads", **settings))
    with driven(engine):
        yield engine
    paths, targets = engine.path_counters(), engine.counters()
    assert (paths[:, :8].sum(axis=0)[[0, 1, 4, 5]] == targets[0, [0, 1, 4, 5]]).all()
    assert (paths[:, PATH_IN_FLIGHT] == 0).all()
    for epoch in engine.epochs():
        assert (epoch.path_counts[:, :, :2].sum(axis=0) == epoch.counts[0, :, :2]).all()
