"""The process that removes the group of the aggressor when its lunscope ends, however that ends.

It is started before the group is made, as a session of its own, and waits for the end of a pipe that only its lunscope
can write to: the kernel closes it after kill -9, too.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from engine.helper_process import READY

_PATIENCE_S = 120.0
"""Time that I/Os may take which a limit holds; the group stays until the last process in it has ended."""
HASTY_S = 5.0
"""Patience of a lunscope that removes a group whose keeper has failed."""
_POLL_S = 0.02


def remove_group(folder: Path, patience_s: float = _PATIENCE_S) -> bool:
    """End the processes of a group and remove it; returns whether it is gone."""
    until_s = time.monotonic() + patience_s
    while time.monotonic() < until_s:
        _kill_members(folder)
        try:
            folder.rmdir()
        except FileNotFoundError:
            return True
        except OSError as error:
            if error.errno != errno.EBUSY:
                return False
        else:
            return True
        time.sleep(_POLL_S)
    return False


def members(folder: Path) -> list[int]:
    """List the processes of a group; none where it is gone."""
    try:
        return [int(line) for line in (folder / "cgroup.procs").read_text().split()]
    except OSError:
        return []


def _kill_members(folder: Path) -> None:
    for process in members(folder):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def main() -> int:
    """Run with the folder of the group, and the pipe as stdin."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    folder = Path(sys.argv[1])
    os.write(1, READY)
    while os.read(0, 64):
        pass
    if remove_group(folder):
        return 0
    print(f"{folder}: a process in it does not end", file=sys.stderr)  # noqa: T201 (its lunscope reads it)
    return 1
