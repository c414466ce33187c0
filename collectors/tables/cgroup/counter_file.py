"""Files read at every tick, kept open up to a limit."""

from __future__ import annotations

import os
import resource
from contextlib import suppress

MOST_OPEN = 512
_FIRST_BYTES = 4096
MOST_BYTES = 8 << 20
"""Largest file: more than the lines of any host's devices."""


class OpenFileBudget:
    """Number of files that may stay open: a quarter of the limit of the process."""

    def __init__(self) -> None:
        self.left = min(MOST_OPEN, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4)


class CounterFile:
    """One file; while open it cannot be confused with that of a later group of the same name."""

    def __init__(self, path: str, budget: OpenFileBudget) -> None:
        self._path = path
        self._budget = budget
        self._descriptor: int | None = None
        self._bytes = _FIRST_BYTES

    def read(self) -> bytes | None:
        """Read the whole file; None if it does not exist, or no longer."""
        try:
            descriptor = self._open() if self._descriptor is None else self._descriptor
            try:
                while len(text := os.pread(descriptor, self._bytes, 0)) == self._bytes < MOST_BYTES:
                    self._bytes *= 2
            finally:
                if self._descriptor is None:
                    os.close(descriptor)
        except OSError:
            self.close()
            return None
        return text

    def close(self) -> None:
        """Close it; reading opens it again."""
        if self._descriptor is not None:
            with suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = None
            self._budget.left += 1

    def _open(self) -> int:
        descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        if self._budget.left > 0:
            self._descriptor = descriptor
            self._budget.left -= 1
        return descriptor
