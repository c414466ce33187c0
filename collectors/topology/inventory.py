"""Background updates of the topology."""

from __future__ import annotations

import threading
import time

from collectors.kernel.uevents import Budget
from collectors.model import HostFacts, Rows, Topology
from collectors.sampling.reading import BackgroundThread, Reading
from collectors.sampling.reading_settings import ReadingSettings
from collectors.tables.host.facts import device_notices
from collectors.topology.device_mapper import open_maps
from collectors.topology.scanner import TopologyScanner
from collectors.topology.state_age import state_age_tables
from collectors.topology.state_changes import (
    PortMarks,
    group_changes,
    limit_changes,
    path_changes,
    policy_changes,
    port_changes,
    read_port_marks,
)
from collectors.topology.state_poll import MapEvents, StatePoll
from engine.events import Event, EventKind
from engine.replacing import replace
from engine.syscalls import trim_heap

POLL_S = 0.5
"""Interval of polling the states of paths: offline and ANA changes come without a uevent."""
POLL_SHARE = 0.02
"""Share of one core; with thousands of paths they are read less often, ..."""
LONGEST_POLL_S = 2.0
"""... but at least this often: a path that recovers must be an event within 5 s."""
REST_SHARE = 0.01
"""Share of one core for facts that change less often than states: ports, policies, marginal paths."""

DEAR_S = 0.05
"""CPU time of a poll or scan from which on its freed memory is returned to the kernel."""

CONFIRM_S = 0.05
"""Longest wait of a tick for states to be read again."""

SCAN_SHARE = 0.25
"""Share of one core while thousands of devices are added or removed; a cheap scan never waits."""


class Inventory:
    """Scans devices on a background thread on request and when paths change; `topology` is the latest result."""

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
        self._states = StatePoll(sysfs)
        self._states_read_ns: int | None = None
        ask_maps = open_maps(sysfs)
        self._map_events = None if ask_maps is None else MapEvents()
        self._rest_budget = Budget(REST_SHARE)
        self._scanner = TopologyScanner(procfs, sysfs, ask_maps, settings)
        self._host = host
        self._wanted: Rows | None = None
        self._changed_names: set[str] | None = set()
        self._suspects: frozenset[str] = frozenset()
        self._changed = threading.Condition()
        self.topology = Topology(host=host)
        """The same object until a device or a notice changes."""
        self._thread = BackgroundThread("inventory", self._run)

    def read(self) -> Reading:
        """Return the events of paths; read `topology` after all collectors have been read.

        Raises:
            RuntimeError: the thread has failed.
        """
        self._thread.check()
        with self._changed:
            events, self._events = tuple(self._events), []
        return Reading(state_age_tables(self._states_read_ns), events=events)

    def request(self, rows: Rows, changed: frozenset[str] | None = None) -> None:
        """Request a scan of a table; a newer request replaces a pending one and includes its devices.

        Args:
            rows: rows of the DISK table.
            changed: names of the devices to read again besides new ones; None for all.
        """
        with self._changed:
            self._wanted = rows
            if changed is None or self._changed_names is None:
                self._changed_names = None
            else:
                self._changed_names |= changed
            self._changed.notify_all()

    def confirm(self, names: frozenset[str], timeout_s: float = CONFIRM_S) -> None:
        """Read the states of some paths again at once, because their I/O contradicts the known states.

        Returns when that is done, or at the timeout: a scan may be in progress.
        """
        with self._changed:
            self._suspects |= names
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._suspects, timeout_s)

    def wait(self, timeout_s: float) -> bool:
        """Wait until the requested scan is complete; return whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: self._wanted is None, timeout_s)

    def close(self) -> None:
        """Stop the thread."""
        with self._changed:
            self._thread.stop_flag.set()
            self._changed.notify_all()
        self._thread.stop()
        self._states.close()

    def _run(self, stop: threading.Event) -> None:
        poll_at = time.monotonic()
        while not stop.is_set():
            with self._changed:
                self._changed.wait_for(
                    lambda: self._wanted is not None or self._suspects or stop.is_set(),
                    max(0.0, poll_at - time.monotonic()),
                )
            if self._wanted is not None:
                self._scan_wanted(stop)
            if not stop.is_set():
                self._confirm(stop)
            if not stop.is_set() and time.monotonic() >= poll_at:
                poll_at = self._poll(stop) + time.monotonic()

    def _scan_wanted(self, stop: threading.Event) -> None:
        # During many hot-plug events the requests made meanwhile are merged.
        stop.wait(self._budget.pause_s)
        with self._changed:
            rows, names, self._changed_names = self._wanted, self._changed_names, set()
        if stop.is_set() or rows is None:
            return
        self._scan(rows, None if names is None else frozenset(names))
        with self._changed:
            if self._wanted is rows:
                self._wanted = None
            self._changed.notify_all()

    def _confirm(self, stop: threading.Event) -> None:
        """Read the states of some paths again, and scan if they changed."""
        names = self._suspects
        if not names:
            return
        if self._rows is not None:
            changed = self._states.confirm(self.topology.graph, names)
            if self._maps_moved() or changed:
                self._rescan(changed, stop)
        with self._changed:
            self._suspects -= names
            self._changed.notify_all()

    def _poll(self, stop: threading.Event) -> float:
        """Read the states of the known paths and ports; return the pause before the next poll.

        The cost of the scan after a change is accounted to scans, so that a change does not delay the next poll.
        """
        if self._rows is None:
            return self._poll_s
        started_ns = time.thread_time_ns()
        names = self._states.changed(self.topology.graph)
        due = bool(names) | self._maps_moved()
        cost_s = (time.thread_time_ns() - started_ns) / 1e9
        more = self._rest_changed()
        if due or more is not None:
            self._rescan(names | (more or frozenset()), stop)
        # Only now does the topology contain the states read.
        self._states_read_ns = self._states.read_ns
        return max(self._poll_s, min(cost_s / POLL_SHARE, LONGEST_POLL_S))

    def _maps_moved(self) -> bool:
        return self._map_events is not None and self._map_events.moved()

    def _rest_changed(self) -> frozenset[str] | None:
        """Names of paths to read again because ports, policies or marginal paths changed; None if none did."""
        if not self._rest_budget.allows():
            return None
        started_ns = time.thread_time_ns()
        marks = read_port_marks(self._sysfs)
        names = self._scanner.marginal_changes(self.topology.graph)
        changed = marks != self._port_marks
        self._port_marks = marks
        self._rest_budget.spend((time.thread_time_ns() - started_ns) / 1e9)
        return names if names or changed else None

    def _rescan(self, names: frozenset[str], stop: threading.Event) -> None:
        stop.wait(self._budget.pause_s)
        if self._rows is not None and not stop.is_set():
            self._scan(self._rows, names)

    def _scan(self, rows: Rows, changed: frozenset[str] | None) -> None:
        started_ns = time.thread_time_ns()
        self._scan_now(rows, changed)
        cost_s = (time.thread_time_ns() - started_ns) / 1e9
        self._budget.spend(cost_s)
        if cost_s >= DEAR_S:
            trim_heap()

    def _scan_now(self, rows: Rows, changed: frozenset[str] | None) -> None:
        if self._rows is None:
            self._port_marks = read_port_marks(self._sysfs)
        self._maps_moved()  # later events of maps are changes against this scan
        self._rows = rows
        devices, graph = self._scanner.scan(rows, changed)
        # An NVMe head shows the I/O of its paths, whether or not the kernel counts I/O of the head.
        heads = {lun.key for lun in graph.luns if lun.multipath == "nvme" and graph.paths_of[lun.key]}
        uncounted = device_notices(device for key, device in devices.items() if key not in heads)
        notices = (*self._host.notices, *uncounted, *graph.notices)
        found = Topology(devices, replace(self._host, notices=notices), graph)
        if not found.same_as(self.topology):
            before = self.topology.graph
            texts = (
                *port_changes(before, graph),
                *path_changes(before, graph, devices),
                *limit_changes(before, graph, devices),
                *policy_changes(before, graph, devices),
                *group_changes(before, graph, devices),
            )
            events = [Event.now(EventKind.HOTPLUG, text, **data) for text, data in texts]
            with self._changed:
                self._events += events
            self.topology = found
