"""Hot-plug: disks that are added, removed or changed while lunscope runs, as events."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable
from typing import Protocol

from collectors.kernel.device_instances import MADE_ONCE
from collectors.kernel.hotplug_changes import changes_between, describe, describe_attentions
from collectors.kernel.identity import DeviceInstance, kernel_name, read_device_instances
from collectors.kernel.uevents import Budget, UeventCounter, UeventListener, UnitAttention
from collectors.sampling.reading import BackgroundThread, Reading
from engine._native import is_sysfs
from engine.events import Event, EventKind

LISTING_SHARE = 0.01
"""Share of one core; 20,000 entries take about 20 ms."""


class BlockListing:
    """Compares names and inode numbers of SYSFS/block with the previous listing.

    The kernel counts every uevent, received or not, in SYSFS/kernel/uevent_seqnum: while that is unchanged no listing
    is needed. Containers in another network namespace receive no uevents, and test trees have none.
    """

    def __init__(self, sysfs: str) -> None:
        self._folder = f"{sysfs}/block"
        self._uevents = UeventCounter(sysfs) if is_sysfs(sysfs) else None
        self._budget = Budget(LISTING_SHARE)
        self._known: dict[str, int] = {}
        self._reused: frozenset[str] = frozenset()
        """Listed entries whose name may belong to another disk by now, with the same inode number or none."""
        self._list()

    def changed(self) -> frozenset[str]:
        """Kernel names of disks that were added, removed or replaced, and of all with a removable medium."""
        if not self._budget.allows() or not (self._uevents is None or self._uevents.moved()):
            return frozenset()
        started_s = time.thread_time()
        names = self._list() | self._reused
        self._budget.spend(time.thread_time() - started_s)
        return frozenset(map(kernel_name, names))

    def _list(self) -> frozenset[str]:
        """List again; return the entries that differ."""
        before, now = self._known, self._inodes()
        if now == before:
            return frozenset()
        self._known = now
        self._reused = frozenset(entry for entry in now if not MADE_ONCE.fullmatch(entry))
        return frozenset(entry for entry, _ in before.items() ^ now.items())

    @property
    def lasting(self) -> frozenset[str]:
        """Kernel names of the listed disks that cannot change while they are listed."""
        return frozenset(kernel_name(entry) for entry in self._known if MADE_ONCE.fullmatch(entry))

    def close(self) -> None:
        """Close the uevent counter."""
        if self._uevents is not None:
            self._uevents.close()

    def _inodes(self) -> dict[str, int]:
        try:
            with os.scandir(self._folder) as entries:
                return {entry.name: entry.inode() for entry in entries}
        except OSError:
            return {}


RESCAN_S = 60.0
"""Interval of a full check of all disks, independent of uevents."""
LIST_S = 1.0
"""Interval of comparing the listing, for disks added or removed without a uevent."""
SETTLE_S = 0.05
"""Uevents come in bursts, some before the attributes exist; they are handled together after this pause."""

STORM_SHARE = 0.25
"""Share of one core for checking disks during continuous uevents."""


class Listener(Protocol):
    """Interface of UeventListener."""

    def fileno(self) -> int:
        """Descriptor that becomes readable when uevents are pending."""

    def pending(self) -> bool:
        """Whether uevents are pending or were lost."""

    def take(self) -> frozenset[str] | None:
        """Names announced since the last call; None if some were lost."""

    def take_attentions(self) -> tuple[UnitAttention, ...]:
        """Return what SCSI devices have said since the last call."""


class HotplugMonitor:
    """Listens to the kernel's uevents on a thread of its own; each one only triggers a check of its disk.

    Disks added or removed without a uevent are detected by the listing; without libudev or netlink, changes of size are
    detected only within a minute, and `notice` reports that.
    """

    def __init__(
        self,
        sysfs: str = "/sys",
        listen: Callable[[], Listener] = UeventListener,
        rescan_s: float = RESCAN_S,
        list_s: float = LIST_S,
    ) -> None:
        self._sysfs = sysfs
        self._known: dict[str, DeviceInstance] = {}
        self._events: list[Event] = []
        self._lock = threading.Lock()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.changes = 0
        """Incremented whenever facts of a disk may have changed."""
        self._touched: frozenset[str] | None = frozenset()
        self.notice = ""
        """Why changes are detected late; empty if they are not."""
        self._unready: frozenset[str] = frozenset()
        """Listed disks without a size so far."""
        self._rescan_s = rescan_s
        self._list_s = list_s
        self._budget = Budget(STORM_SHARE)
        self._listener: Listener | None = None
        try:
            self._listener = listen()
        except (ImportError, OSError) as error:
            self.notice = f"hot-plug: a new size of a disk is noticed within {rescan_s:.0f} s: {error}; install libudev"
        self._thread = BackgroundThread("hotplug", self._run)

    def read(self) -> Reading:
        """Return the events since the last call.

        Raises:
            RuntimeError: the thread has failed.
        """
        self._thread.check()
        with self._lock:
            events, self._events = tuple(self._events), []
        return Reading(events=events)

    def take_touched(self) -> frozenset[str] | None:
        """Return names of the disks announced since the last call; None if any disk may have changed."""
        with self._lock:
            touched, self._touched = self._touched, frozenset()
        return touched

    def close(self) -> None:
        """Stop the thread."""
        if not self._thread.stop_flag.is_set():
            self._thread.stop_flag.set()
            os.eventfd_write(self._wake, 1)
            self._thread.stop()
            os.close(self._wake)

    def _run(self, stop: threading.Event) -> None:
        listing = BlockListing(self._sysfs)
        self._known = snapshot(self._sysfs, None)
        rescan_at = time.monotonic() + self._rescan_s
        while not stop.is_set():
            self._sleep(min(self._list_s, rescan_at - time.monotonic()))
            names = self._announced(stop)
            self._note_attentions()
            if names is None or time.monotonic() >= rescan_at:
                rescan_at = time.monotonic() + self._rescan_s
                self._check(None)
                continue
            if names:
                self._check(names)
            if self._budget.allows():
                self._check_listed(listing)
        listing.close()

    def _check_listed(self, listing: BlockListing) -> None:
        names = listing.changed() | self._unready
        if names:
            self._check(names, announced=False)
            self._unready = (names & listing.lasting) - self._known.keys()

    def _sleep(self, timeout_s: float) -> None:
        poller = select.poll()
        poller.register(self._wake, select.POLLIN)
        if self._listener is not None:
            poller.register(self._listener.fileno(), select.POLLIN)
        poller.poll(max(0.0, timeout_s) * 1000)

    def _announced(self, stop: threading.Event) -> frozenset[str] | None:
        """Names in the pending uevents; None if some were lost."""
        if self._listener is None or not self._listener.pending():
            return frozenset()
        stop.wait(max(SETTLE_S, self._budget.pause_s))
        return self._listener.take()

    def _note_attentions(self) -> None:
        found = () if self._listener is None else self._listener.take_attentions()
        events = [Event.now(EventKind.HOTPLUG, text, **data) for text, data in describe_attentions(found)]
        if events:
            with self._lock:
                self._events += events

    def _check(self, names: frozenset[str] | None, *, announced: bool = True) -> None:
        """Compare some or all disks with their last known state; facts of an announced disk may have changed."""
        started_s = time.thread_time()
        now = snapshot(self._sysfs, names)
        checked = self._known.keys() if names is None else names
        before = {name: self._known.pop(name) for name in list(checked) if name in self._known}
        self._known |= now
        changes = changes_between(before, now)
        # Devices that were never present, such as an empty loop device or one of another sysfs, are no change.
        if changes or (announced and names is not None and (before or now)):
            events = [Event.now(EventKind.HOTPLUG, text, **data) for text, data in describe(self._sysfs, changes)]
            with self._lock:
                self._events += events
                self._touched = None if names is None or self._touched is None else self._touched | names
            self.changes += 1
        self._budget.spend(time.thread_time() - started_s)


def snapshot(sysfs: str, names: frozenset[str] | None) -> dict[str, DeviceInstance]:
    """Disks present now, all or those named; a device of size 0 (no medium, no backing file) is not present."""
    # A name that is not there has no facts.
    wanted = sorted(map(kernel_name, os.listdir(f"{sysfs}/block")) if names is None else names)  # noqa: PTH208 names only
    incarnations = read_device_instances(sysfs, wanted)
    return {name: found for name, found in zip(wanted, incarnations, strict=True) if found.size_bytes}
