"""Keeps the topology up to date beside the ticks."""

from __future__ import annotations

import threading
from dataclasses import replace

from collectors.background import BackgroundThread
from collectors.devices import scan_devices
from collectors.hostfacts import device_notices
from collectors.model import HostFacts, Rows, Topology
from collectors.reading import Reading


class Inventory:
    """Scans devices on a thread of its own whenever asked; `topology` is the latest result."""

    def __init__(self, sysfs: str, host: HostFacts) -> None:
        self._sysfs = sysfs
        self._host = host
        self._wanted: Rows | None = None
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

    def request(self, rows: Rows) -> None:
        """Have the devices of a table scanned soon; a newer request replaces one that waits."""
        with self._changed:
            self._wanted = rows
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
                rows = self._wanted
            if rows is None or stop.is_set():
                return
            self._scan(rows)
            with self._changed:
                if self._wanted is rows:
                    self._wanted = None
                self._changed.notify_all()

    def _scan(self, rows: Rows) -> None:
        devices = scan_devices(self._sysfs, rows)
        notices = (*self._host.notices, *device_notices(devices.values()))
        if devices != self.topology.devices or notices != self.topology.host.notices:
            self.topology = Topology(devices, replace(self._host, notices=notices))
