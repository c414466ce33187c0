"""Waits for the mount table of this namespace to change, for a time, or for an end."""

from __future__ import annotations

import os
import select
from pathlib import Path


class MountChanges:
    """Polls mountinfo, which is ready with an error after every change (proc_pid_mountinfo(5))."""

    def __init__(self, procfs: Path = Path("/proc")) -> None:
        self._mounts = os.open(procfs / "self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._poll = select.poll()
        self._poll.register(self._mounts, select.POLLPRI | select.POLLERR)
        self._poll.register(self._wake, select.POLLIN)

    def wait(self, timeout_s: float) -> bool:
        """Wait at most so long; whether mounts have changed since the last call."""
        return any(fd == self._mounts for fd, _ in self._poll.poll(timeout_s * 1e3))

    def wake(self) -> None:
        """End every wait from now on at once; from any thread."""
        os.eventfd_write(self._wake, 1)

    def close(self) -> None:
        """Give the descriptors back; nobody may wait any more."""
        os.close(self._mounts)
        os.close(self._wake)
