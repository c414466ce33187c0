"""Whether the kernel has announced anything, without listening, and how often to look into it."""

from __future__ import annotations

import os
import time
from pathlib import Path


class UeventCounter:
    """SYSFS/kernel/uevent_seqnum: how many uevents the kernel has sent; silent where it cannot be read."""

    def __init__(self, sysfs: str) -> None:
        self._seen = b""
        try:
            self._file: int | None = os.open(Path(sysfs, "kernel/uevent_seqnum"), os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._file = None

    def moved(self) -> bool:
        """Whether uevents came since the last call."""
        now = self._read()
        moved = now != self._seen
        self._seen = now
        return moved

    def pending(self) -> bool:
        """Whether uevents came since the last call of `moved`."""
        return self._read() != self._seen

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _read(self) -> bytes:
        return b"" if self._file is None else os.pread(self._file, 32, 0)


CHEAP_S = 0.005
"""What costs no more than this may happen at every tick."""


class Budget:
    """Lets something dear happen as often as keeps it within a share of the time."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._next_s = 0.0

    def allows(self) -> bool:
        """Whether it may happen now."""
        return time.monotonic() >= self._next_s

    @property
    def pause_s(self) -> float:
        """How long until it may happen."""
        return max(0.0, self._next_s - time.monotonic())

    def spend(self, cost_s: float) -> None:
        """Note what it has just cost."""
        pause_s = 0.0 if cost_s <= CHEAP_S else cost_s / self._share
        self._next_s = time.monotonic() + pause_s
