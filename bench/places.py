"""Storage to measure on: a loop device over tmpfs, a zram device, and a file on the disk of the temporary folder."""

from __future__ import annotations

import errno
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from engine._native import fill

SIZE_BYTES = 1 << 30
_ZRAM_CONTROL = Path("/sys/class/zram-control")
_PATIENCE_S = 5.0


def places(stack: ExitStack) -> Iterator[tuple[str, str]]:
    """Make one place after the other and name it; the stack takes them apart."""
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
    """Make a file full of incompressible data for as long as the block lasts."""
    with tempfile.NamedTemporaryFile(dir=folder, prefix="lunscope-bench-") as file:
        if fill(file.fileno(), 0, SIZE_BYTES, seed=1) < SIZE_BYTES:
            raise OSError(f"{folder}: no room for {SIZE_BYTES} bytes")
        os.fsync(file.fileno())
        yield Path(file.name)


@contextmanager
def loop(backing: Path) -> Iterator[str]:
    """Attach a loop device of our own with direct I/O."""
    command = ["losetup", "--find", "--show", "--direct-io=on", str(backing)]
    device = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


@contextmanager
def zram(size_bytes: int = SIZE_BYTES) -> Iterator[str]:
    """Add a zram device of our own, full of incompressible data; its reads are done where they are submitted."""
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
        _remove_zram(number)


def _remove_zram(number: str) -> None:
    """Remove a device that a monitor may be looking into at this moment."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            (_ZRAM_CONTROL / "hot_remove").write_text(number)
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return
