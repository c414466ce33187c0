"""Disks that come, go or change while lunscope runs, as events."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from collectors.kernel.block_listing import BlockListing
from collectors.kernel.hotplug_changes import changes_between, describe
from collectors.kernel.identity import Incarnation, kernel_name, read_incarnations
from collectors.kernel.uevent_listener import UeventListener
from collectors.kernel.uevents import Budget
from collectors.sources.background import BackgroundThread
from collectors.sources.reading import Reading
from engine.events import Event, EventKind

RESCAN_S = 60.0
"""Everything is looked at again so often, whatever the kernel announced."""
LIST_S = 1.0
"""The listing of disks is compared so often, for those that come and go without an announcement."""
SETTLE_S = 0.05
"""Uevents come in bursts, some before the attributes are there; they are looked at together after this pause."""

STORM_SHARE = 0.25
"""Of one core, for looking at disks while uevents never end."""


class Listener(Protocol):
    """What UeventListener offers."""

    def fileno(self) -> int:
        """Descriptor that becomes readable when uevents wait."""

    def pending(self) -> bool:
        """Whether uevents wait or were lost."""

    def take(self) -> frozenset[str] | None:
        """Names announced since the last call; None if some were lost."""


class HotplugMonitor:
    """Listens to the kernel's uevents on a thread of its own; each only says which disk to look at again.

    Disks that come and go without one are noticed by their listing; without libudev or netlink, changes of size are
    noticed within a minute only, and `notice` says so.
    """

    def __init__(
        self,
        sysfs: str = "/sys",
        listen: Callable[[], Listener] = UeventListener,
        rescan_s: float = RESCAN_S,
        list_s: float = LIST_S,
    ) -> None:
        self._sysfs = sysfs
        self._known: dict[str, Incarnation] = {}
        self._events: list[Event] = []
        self._lock = threading.Lock()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.changes = 0
        """Grows whenever facts of a disk may be other than before."""
        self._touched: frozenset[str] | None = frozenset()
        self.notice = ""
        """Why changes are seen late; empty if they are not."""
        self._unready: frozenset[str] = frozenset()
        """Disks that are listed and have no size yet."""
        self._rescan_s = rescan_s
        self._list_s = list_s
        self._budget = Budget(STORM_SHARE)
        self._listener: Listener | None = None
        try:
            self._listener = listen()
        except (ImportError, OSError) as error:
            self.notice = f"hot-plug: a new size of a disk is noticed within {rescan_s:.0f} s: {error}; install libudev"
        self._thread = BackgroundThread("hotplug", self._run)
        self._thread.start()

    @property
    def cpu_ns(self) -> int:
        """CPU time of the listening thread."""
        return self._thread.cpu_ns

    def read(self) -> Reading:
        """Hand over what happened since the last call.

        Raises:
            RuntimeError: the thread has failed.
        """
        self._thread.check()
        with self._lock:
            events, self._events = tuple(self._events), []
        return Reading(events=events)

    def take_touched(self) -> frozenset[str] | None:
        """Names of the disks announced since the last call; None if all may be other than before."""
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
            if names is None or time.monotonic() >= rescan_at:
                rescan_at = time.monotonic() + self._rescan_s
                self._look_at(None)
                continue
            if names:
                self._look_at(names)
            if self._budget.allows():
                self._look_at_listed(listing)
        listing.close()

    def _look_at_listed(self, listing: BlockListing) -> None:
        names = listing.changed() | self._unready
        if names:
            self._look_at(names, announced=False)
            self._unready = (names & listing.lasting) - self._known.keys()

    def _sleep(self, timeout_s: float) -> None:
        poller = select.poll()
        poller.register(self._wake, select.POLLIN)
        if self._listener is not None:
            poller.register(self._listener.fileno(), select.POLLIN)
        poller.poll(max(0.0, timeout_s) * 1000)

    def _announced(self, stop: threading.Event) -> frozenset[str] | None:
        """Names in the uevents that are waiting; None if some were lost."""
        if self._listener is None or not self._listener.pending():
            return frozenset()
        stop.wait(max(SETTLE_S, self._budget.pause_s))
        return self._listener.take()

    def _look_at(self, names: frozenset[str] | None, *, announced: bool = True) -> None:
        """Compare some disks, or all, with what was known of them; an announced one may have other facts now."""
        started_s = time.thread_time()
        now = snapshot(self._sysfs, names)
        others = {name: life for name, life in self._known.items() if names is not None and name not in names}
        before = {name: life for name, life in self._known.items() if name not in others}
        self._known = others | now
        changes = changes_between(before, now)
        # What never was there, an empty loop device or one of another sysfs, is no news.
        if changes or (announced and names is not None and (before or now)):
            events = [Event.now(EventKind.HOTPLUG, text, **data) for text, data in describe(self._sysfs, changes)]
            with self._lock:
                self._events += events
                self._touched = None if names is None or self._touched is None else self._touched | names
            self.changes += 1
        self._budget.spend(time.thread_time() - started_s)


def snapshot(sysfs: str, names: frozenset[str] | None) -> dict[str, Incarnation]:
    """Disks that are there now, all or those named; a device of size 0 (no medium, no backing file) is not there."""
    there = {kernel_name(entry) for entry in os.listdir(Path(sysfs, "block"))}  # noqa: PTH208 names only, thousands
    wanted = sorted(there if names is None else there & names)
    incarnations = read_incarnations(sysfs, wanted)
    return {name: found for name, found in zip(wanted, incarnations, strict=True) if found.size_bytes}
