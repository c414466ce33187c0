"""Which disks came or went, told by the listing of SYSFS/block alone: for hosts where uevents do not arrive."""

from __future__ import annotations

import os
import time

from collectors.kernel.identity import kernel_name
from collectors.kernel.incarnations import MADE_ONCE
from collectors.kernel.uevents import Budget, UeventCounter
from engine._native import is_sysfs

LISTING_SHARE = 0.01
"""Of one core; 20,000 entries take some 20 ms."""


class BlockListing:
    """Compares names and inode numbers of SYSFS/block with those of the listing before.

    A kernel numbers the entries of its sysfs and counts every uevent, heard or not, in SYSFS/kernel/uevent_seqnum: as
    long as that stands still there is nothing to list. Containers in another network namespace hear no uevents, and
    trees that are no kernel's sysfs have none.
    """

    def __init__(self, sysfs: str) -> None:
        self._folder = f"{sysfs}/block"
        self._uevents = UeventCounter(sysfs) if is_sysfs(sysfs) else None
        self._budget = Budget(LISTING_SHARE)
        self._known = self._inodes()

    def changed(self) -> frozenset[str]:
        """Kernel names of disks that came, went or were replaced, and of those whose medium can be changed."""
        if not self._budget.allows() or not (self._uevents is None or self._uevents.moved()):
            return frozenset()
        started_s = time.thread_time()
        before, self._known = self._known, self._inodes()
        names = {entry for entry, _ in before.items() ^ self._known.items()}
        names |= {entry for entry in self._known if not MADE_ONCE.fullmatch(entry)}
        self._budget.spend(time.thread_time() - started_s)
        return frozenset(map(kernel_name, names))

    @property
    def lasting(self) -> frozenset[str]:
        """Kernel names of the disks listed last that stay as they are for as long as they are listed."""
        return frozenset(kernel_name(entry) for entry in self._known if MADE_ONCE.fullmatch(entry))

    def close(self) -> None:
        """Close the counter of uevents."""
        if self._uevents is not None:
            self._uevents.close()

    def _inodes(self) -> dict[str, int]:
        try:
            with os.scandir(self._folder) as entries:
                return {entry.name: entry.inode() for entry in entries}
        except OSError:
            return {}
