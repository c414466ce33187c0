"""Targets of the measurements: a loop device over tmpfs, a zram device, and a file in the temporary folder."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from bench.loops import LOOP_CTL_ADD, LOOP_CTL_REMOVE
from engine._native import fill

SIZE_BYTES = 1 << 30
_ZRAM_CONTROL = Path("/sys/class/zram-control")
_PATIENCE_S = 5.0
_FIRST_LOOP = 500_000
"""Loop device numbers from here on, by process, are unused by others; minors end at 2^20."""


def storage_paths(stack: ExitStack) -> Iterator[tuple[str, str]]:
    """Set up one target after the other, as name and path; the stack removes them."""
    if os.geteuid() == 0:
        backing = stack.enter_context(scratch(Path("/dev/shm")))
        yield "loop over tmpfs", stack.enter_context(loop(backing))
    else:
        print("loop over tmpfs, zram: left out, need root")
    if os.geteuid() == 0 and _ZRAM_CONTROL.exists():
        with zram() as device:
            yield "zram", device
    yield "file on disk", str(stack.enter_context(scratch(Path(tempfile.gettempdir()))))


@contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """Make a temporary file of incompressible data."""
    with tempfile.NamedTemporaryFile(dir=folder, prefix="lunscope-bench-") as file:
        if fill(file.fileno(), 0, SIZE_BYTES, seed=1) < SIZE_BYTES:
            raise OSError(f"{folder}: no room for {SIZE_BYTES} bytes")
        os.fsync(file.fileno())
        yield Path(file.name)


@contextmanager
def loop(backing: Path) -> Iterator[str]:
    """Add a new loop device with direct I/O: a detached one keeps its queue settings."""
    with Path("/dev/loop-control").open("rb") as control:
        number = _added_loop(control)
        device = f"/dev/loop{number}"
        try:
            subprocess.run(["losetup", "--direct-io=on", device, str(backing)], check=True)
            try:
                yield device
            finally:
                subprocess.run(["losetup", "--detach", device], check=True)
        finally:
            _patiently(lambda: fcntl.ioctl(control, LOOP_CTL_REMOVE, number))


def _added_loop(control: BinaryIO) -> int:
    """Add a loop device and return its number, the first free one from a number of this process on."""
    number = _FIRST_LOOP + os.getpid() % _FIRST_LOOP
    while True:
        try:
            return fcntl.ioctl(control, LOOP_CTL_ADD, number)
        except FileExistsError:
            number += 1


@contextmanager
def zram(size_bytes: int = SIZE_BYTES) -> Iterator[str]:
    """Add a zram device full of incompressible data; its reads complete in the submitting thread."""
    number = (_ZRAM_CONTROL / "hot_add").read_text().strip()
    device, settings = f"/dev/zram{number}", Path(f"/sys/block/zram{number}")
    try:
        (settings / "disksize").write_text(str(size_bytes))
        fd = os.open(device, os.O_RDWR | os.O_DIRECT)
        try:
            fill(fd, 0, size_bytes, seed=1)
        finally:
            os.close(fd)
        yield device
    finally:
        with suppress(OSError):
            (settings / "reset").write_text("1")
        _patiently(lambda: (_ZRAM_CONTROL / "hot_remove").write_text(number))


def _patiently(remove: Callable[[], object]) -> None:
    """Remove a device that a monitor may have open at the moment."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            remove()
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return
