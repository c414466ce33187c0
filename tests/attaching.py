"""Loop devices attached one at a time: who loses a race for a free number has the device of the winner open a while."""

from __future__ import annotations

import fcntl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_AS_NEW = {"scheduler": "none", "nr_requests": "128", "nomerges": "0"}
"""What drivers/block/loop.c and the block layer begin with; a number that is used again has what was set before."""


def attach_one(*command: str) -> str:
    """Run `losetup --find` or `mount -o loop` while no other test does, and return what it printed.

    The lock is of the device that hands out free numbers, so that all workers and sessions share it.
    """
    with Path("/dev/loop-control").open("rb") as control:
        fcntl.flock(control, fcntl.LOCK_EX)
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr.strip()}"
    attached = done.stdout.strip()
    if attached.startswith("/dev/loop"):
        _reset(Path("/sys/block", Path(attached).name, "queue"))
    return attached


@contextmanager
def attached(*command: str) -> Iterator[str]:
    """Attach a loop device as `attach_one` does, and detach it at the end.

    Only while it has the same file: who detached it before must not take the device of another test, which may have the
    number now.
    """
    device = attach_one(*command)
    backing = backing_of(device)
    try:
        yield device
    finally:
        if backing_of(device) == backing:
            subprocess.run(["losetup", "--detach", device], capture_output=True, check=False)


@contextmanager
def attached_instead(device: str, image: Path) -> Iterator[None]:
    """Detach a loop device, attach another file to the same number, and detach that at the end."""
    with Path("/dev/loop-control").open("rb") as control:
        fcntl.flock(control, fcntl.LOCK_EX)
        subprocess.run(["losetup", "--detach", device], check=True, timeout=60)
        # Who has it open still, such as a ring that the kernel takes down, keeps the file attached.
        while backing_of(device):
            time.sleep(0.01)
        subprocess.run(["losetup", device, str(image)], check=True, timeout=60)
    try:
        yield
    finally:
        if backing_of(device) == str(image):
            subprocess.run(["losetup", "--detach", device], capture_output=True, check=False)


def backing_of(device: str) -> str:
    """Name the file of a loop device, be it deleted or not; empty where none is attached."""
    try:
        named = Path("/sys/block", Path(device).name, "loop/backing_file").read_text().strip()
    except OSError:
        return ""
    return named.removesuffix(" (deleted)")


def _reset(queue: Path) -> None:
    for name, value in _AS_NEW.items():
        with suppress(OSError):
            (queue / name).write_text(value)
