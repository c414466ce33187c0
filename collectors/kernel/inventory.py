"""Keeps the topology up to date beside the ticks."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

from collectors.kernel.hostfacts import device_notices
from collectors.kernel.uevents import Budget
from collectors.model import HostFacts, Rows, Topology
from collectors.sources.background import BackgroundThread
from collectors.sources.memory import give_back
from collectors.sources.reading import Reading
from collectors.sources.reading_settings import ReadingSettings
from collectors.topology.device_mapper import open_maps
from collectors.topology.policies import policy_changes
from collectors.topology.port_states import PortMarks, port_changes, read_port_marks
from collectors.topology.scanner import TopologyScanner
from collectors.topology.states import changed_paths, limit_changes, path_changes
from engine.events import Event, EventKind

POLL_S = 1.0
"""States of paths are looked at so often: offline and ANA changes come without a uevent."""
POLL_SHARE = 0.02
"""Of one core; with thousands of paths they are looked at more seldom."""

DEAR_S = 0.05
"""CPU from which on a look or a scan leaves so much freed memory behind that it is given back."""

SCAN_SHARE = 0.25
"""Of one core, while thousands of devices come and go; a scan that is cheap never waits."""


class Inventory:
    """Scans devices on a thread of its own whenever asked, and when paths change; `topology` is the latest result."""

    def __init__(
        self,
        procfs: str,
        sysfs: str,
        host: HostFacts,
        poll_s: float = POLL_S,
        settings: ReadingSettings | None = None,
    ) -> None:
        self._sysfs = sysfs
        self._poll_s = poll_s
        self._rows: Rows | None = None
        self._events: list[Event] = []
        self._budget = Budget(SCAN_SHARE)
        self._port_marks: PortMarks = frozenset()
        self._scanner = TopologyScanner(procfs, sysfs, open_maps(sysfs), settings)
        self._host = host
        self._wanted: Rows | None = None
        self._changed_names: set[str] | None = set()
        self._changed = threading.Condition()
        self.topology = Topology(host=host)
        """One object is kept until a device or a notice changes."""
        self._thread = BackgroundThread("inventory", self._run)
        self._thread.start()

    @property
    def cpu_ns(self) -> int:
        """CPU time of the scanning thread."""
        return self._thread.cpu_ns

    def read(self) -> Reading:
        """Hand over what happened to paths; the topology is asked for after all collectors have been read.

        Raises:
            RuntimeError: the thread has failed.
        """
        self._thread.check()
        with self._changed:
            events, self._events = tuple(self._events), []
        return Reading(events=events)

    def request(self, rows: Rows, changed: frozenset[str] | None = None) -> None:
        """Have a table scanned soon; a newer request replaces one that waits and takes over what it was to read.

        Args:
            rows: of the DISK table.
            changed: names of the devices to read again beside new ones; None for all.
        """
        with self._changed:
            self._wanted = rows
            if changed is None or self._changed_names is None:
                self._changed_names = None
            else:
                self._changed_names |= changed
            self._changed.notify_all()

    def wait(self, timeout_s: float) -> bool:
        """Wait until what was requested is there; whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: self._wanted is None, timeout_s)

    def close(self) -> None:
        """Stop the thread."""
        with self._changed:
            self._thread.stop_flag.set()
            self._changed.notify_all()
        self._thread.stop()

    def _run(self, stop: threading.Event) -> None:
        pause_s = self._poll_s
        while not stop.is_set():
            with self._changed:
                self._changed.wait_for(lambda: self._wanted is not None or stop.is_set(), pause_s)
            # In a storm of hot-plug the requests that come meanwhile are one.
            stop.wait(self._budget.pause_s)
            with self._changed:
                rows, names, self._changed_names = self._wanted, self._changed_names, set()
            if stop.is_set():
                return
            if rows is None:
                pause_s = self._poll()
                continue
            started_ns = time.thread_time_ns()
            self._scan(rows, None if names is None else frozenset(names))
            cost_s = (time.thread_time_ns() - started_ns) / 1e9
            self._budget.spend(cost_s)
            _tidy(cost_s)
            with self._changed:
                if self._wanted is rows:
                    self._wanted = None
                self._changed.notify_all()

    def _poll(self) -> float:
        """Look at the states of the known paths and ports; how long to wait before the next look."""
        started_ns = time.thread_time_ns()
        if self._rows is not None:
            marks = read_port_marks(self._sysfs)
            graph = self.topology.graph
            names = changed_paths(self._sysfs, graph) | self._scanner.marginal_changes(graph)
            if names or marks != self._port_marks:
                self._scan(self._rows, names)
            self._port_marks = marks
        cost_s = (time.thread_time_ns() - started_ns) / 1e9
        _tidy(cost_s)
        return max(self._poll_s, cost_s / POLL_SHARE)

    def _scan(self, rows: Rows, changed: frozenset[str] | None) -> None:
        if self._rows is None:
            self._port_marks = read_port_marks(self._sysfs)
        self._rows = rows
        devices, graph = self._scanner.scan(rows, changed)
        # An NVMe head shows what its paths count, whether the kernel counts on it or not.
        heads = {lun.key for lun in graph.luns if lun.multipath == "nvme" and graph.paths_of[lun.key]}
        uncounted = device_notices(device for key, device in devices.items() if key not in heads)
        notices = (*self._host.notices, *uncounted, *graph.notices)
        found = Topology(devices, replace(self._host, notices=notices), graph)
        if not found.same_as(self.topology):
            before = self.topology.graph
            told = (
                *port_changes(before, graph),
                *path_changes(before, graph, devices),
                *limit_changes(before, graph, devices),
                *policy_changes(before, graph, devices),
            )
            events = [Event.now(EventKind.HOTPLUG, text, **data) for text, data in told]
            with self._changed:
                self._events += events
            self.topology = found


def _tidy(cost_s: float) -> None:
    if cost_s >= DEAR_S:
        give_back()
