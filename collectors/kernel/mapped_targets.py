"""Maps of the device mapper of some kinds, and their status at every tick. Needs root; read-only."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator

from msgspec import Struct

from collectors.kernel.identity import number_of
from collectors.model import Rows
from engine._native import is_sysfs
from engine.hostfs.dm_control import CONTROL, Number, first_target

SEARCH_PERIOD_S = 10.0
"""Interval at which maps are searched: a table may be exchanged under a name, as lvconvert does."""


class MappedTarget(Struct, frozen=True):
    """One map, by its first target."""

    key: str
    """Key of its block device."""
    name: str
    number: Number
    kind: str
    table: str
    """Parameters of the target, as `dmsetup table` prints them."""


class MappedTargets:
    """Finds the maps of these kinds now and then, and reads their status at every tick."""

    def __init__(self, kinds: Collection[str], clock_s: Callable[[], float] = time.monotonic) -> None:
        self._kinds = frozenset(kinds)
        self._clock_s = clock_s
        self._control: int | None = None
        self._rows: Rows | None = None
        self._next_search_s = 0.0
        self._found: tuple[MappedTarget, ...] = ()

    @classmethod
    def of_host(cls, sysfs: str, kinds: Collection[str]) -> MappedTargets | None:
        """Return the reader; None without the rights, or if `sysfs` is not of the running kernel."""
        if not is_sysfs(sysfs) or not os.access(CONTROL, os.R_OK | os.W_OK):
            return None
        return cls(kinds)

    def states(self, disks: Rows) -> Iterator[tuple[MappedTarget, str]]:
        """Yield the maps among these disks with their status; one that vanished meanwhile is left out."""
        control = self._opened()
        if control is None:
            return
        now_s = self._clock_s()
        if disks is not self._rows or now_s >= self._next_search_s:
            self._found = tuple(self._searched(control, disks))
            self._rows, self._next_search_s = disks, now_s + SEARCH_PERIOD_S
        for target in self._found:
            status = first_target(control, target.number, table=False)
            if status is not None and status[0] == target.kind:
                yield target, status[1]

    def close(self) -> None:
        """Close the control device."""
        if self._control is not None:
            os.close(self._control)
            self._control = None

    def _searched(self, control: int, disks: Rows) -> Iterator[MappedTarget]:
        for key, name in zip(disks.keys, disks.names, strict=True):
            number = number_of(key) if name.startswith("dm-") else None
            found = None if number is None else first_target(control, number, table=True)
            if number is not None and found is not None and found[0] in self._kinds:
                yield MappedTarget(key, name, number, *found)

    def _opened(self) -> int | None:
        if self._control is None:
            try:
                self._control = os.open(CONTROL, os.O_RDWR | os.O_CLOEXEC)
            except OSError:
                return None
        return self._control
