"""Loop devices attached one at a time: who loses a race for a free number has the device of the winner open a while."""

from __future__ import annotations

import fcntl
import subprocess
from pathlib import Path


def attach_one(*command: str) -> str:
    """Run `losetup --find` or `mount -o loop` while no other test does, and return what it printed.

    The lock is of the device that hands out free numbers, so that all workers and sessions share it.
    """
    with Path("/dev/loop-control").open("rb") as control:
        fcntl.flock(control, fcntl.LOCK_EX)
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr.strip()}"
    return done.stdout.strip()
