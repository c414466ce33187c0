"""Counters of one control group, read only when they can have changed, from files that are kept open up to a limit."""

from __future__ import annotations

import os
import resource
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from collectors.model import MISSING
from collectors.tables.cgroup.files import NO_COUNTS, WIDTH, Counts, blkio, io_stat, pressure
from collectors.tables.cgroup.schema import CGROUP, LIMITS, PRESSURES
from collectors.tables.cgroup.tree import Group, Hierarchy

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


_PSI = slice(CGROUP.index(PRESSURES[0]), CGROUP.index(PRESSURES[-1]) + 1)
_LIMITS = slice(WIDTH, WIDTH + len(LIMITS))
_UNKNOWN = (int(MISSING), int(MISSING))


class Member:
    """Reads the files of a group and caches their values.

    Counters of a group include those of its descendants: if they are unchanged, the descendants are not read.
    """

    def __init__(self, group: Group, hierarchy: Hierarchy, budget: OpenFileBudget) -> None:
        self.group = group
        self.moved = True
        """Whether a descendant may have done I/O since the previous reading."""
        self.waited = True
        """Whether a task of a descendant may have waited for I/O since then."""
        self.devices = NO_COUNTS.devices
        self.values: NDArray[np.uint64] = np.empty((0, len(CGROUP.columns)), np.uint64)
        """Columns of CGROUP, a row per device."""
        self._adds_up = hierarchy.adds_up
        self._counters = [CounterFile(f"{group.folder}/{name}", budget) for name in hierarchy.counters]
        self._pressure = CounterFile(f"{group.folder}/io.pressure", budget) if hierarchy.v2 else None
        self._texts: list[bytes] | None = None
        self._stalls = _UNKNOWN
        self._absent = False

    def read(self, above: Member | None, *, retry: bool) -> bool:
        """Read counters that can have changed; return whether any has.

        Args:
            above: the parent, read before; None for the root.
            retry: whether to try missing files again.
        """
        if self._absent and not retry:
            return False
        changed = False
        if above is None or above.moved or self._texts is None:
            changed = self._read_counters()
        else:
            self.moved = False
        if self._pressure is not None and self.devices:
            changed |= self._read_pressure(changed=changed, awaited=above is None or above.waited)
        return changed

    def take(self, group: Group) -> bool:
        """Take the result of a later scan; return whether the limits changed."""
        changed = group.limits != self.group.limits
        self.group = group
        if changed:
            self.values[:, _LIMITS] = self._limits(self.devices)
        return changed

    def close(self) -> None:
        """Close all files."""
        for file in self._counters:
            file.close()
        if self._pressure is not None:
            self._pressure.close()

    def _read_counters(self) -> bool:
        texts = [text for file in self._counters if (text := file.read()) is not None]
        self._absent = len(texts) < len(self._counters)
        if texts == self._texts:
            self.moved = self._absent or not self._adds_up
            return False
        self._texts, self.moved = texts, True
        self._put(NO_COUNTS if self._absent else io_stat(*texts) if len(texts) == 1 else blkio(*texts))
        return True

    def _put(self, counts: Counts) -> None:
        if counts.devices == self.devices:
            # Limits are taken with a scan, pressure is read on its own.
            self.values[:, :WIDTH] = counts.values
            return
        self.devices = counts.devices
        self.values = np.full((len(counts.devices), len(CGROUP.columns)), MISSING, np.uint64)
        self.values[:, :WIDTH] = counts.values
        self.values[:, _LIMITS] = self._limits(counts.devices)

    def _limits(self, devices: tuple[tuple[int, int], ...]) -> NDArray[np.uint64]:
        limits = np.full((len(devices), len(LIMITS)), MISSING, np.uint64)
        for row, device in enumerate(devices):
            if device in self.group.limits:
                limits[row] = self.group.limits[device]
        return limits

    def _read_pressure(self, *, changed: bool, awaited: bool) -> bool:
        """Read how long tasks waited; the last value is kept if no task can have waited."""
        before = self._stalls
        if self._pressure is not None and (awaited or before == _UNKNOWN):
            text = self._pressure.read()
            self._stalls = _UNKNOWN if text is None else pressure(text)
        self.waited = self._stalls != before or self._stalls == _UNKNOWN
        if self.waited or changed:
            self.values[:, _PSI] = self._stalls
        return self._stalls != before
