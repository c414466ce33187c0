"""Keeps the topology up to date beside the ticks."""

from __future__ import annotations

import threading
from dataclasses import replace

from collectors.background import BackgroundThread
from collectors.hostfacts import device_notices
from collectors.model import HostFacts, Rows, Topology
from collectors.reading import Reading
from collectors.topology.device_mapper import open_maps
from collectors.topology.scanner import TopologyScanner


class Inventory:
    """Scans devices on a thread of its own whenever asked; `topology` is the latest result."""

    def __init__(self, procfs: str, sysfs: str, host: HostFacts) -> None:
        self._scanner = TopologyScanner(procfs, sysfs, open_maps(sysfs))
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
        """Bring nothing of its own into a sample; the topology is asked for after all collectors have been read.

        Raises:
            RuntimeError: the thread has failed.
        """
        self._thread.check()
        return Reading()

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
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._wanted is not None or stop.is_set())
                rows, names, self._changed_names = self._wanted, self._changed_names, set()
            if rows is None or stop.is_set():
                return
            self._scan(rows, None if names is None else frozenset(names))
            with self._changed:
                if self._wanted is rows:
                    self._wanted = None
                self._changed.notify_all()

    def _scan(self, rows: Rows, changed: frozenset[str] | None) -> None:
        devices, graph = self._scanner.scan(rows, changed)
        notices = (*self._host.notices, *device_notices(devices.values()), *graph.notices)
        found = Topology(devices, replace(self._host, notices=notices), graph)
        if not found.same_as(self.topology):
            self.topology = found
