"""Samples the devices below a load over the measured part of each point."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from collectors.model import Step, Topology

if TYPE_CHECKING:
    from collectors.reports.run_devices import RunSamples
    from engine.running.status import LoadStatus
    from engine.study.load import Observed

_SAMPLE_S = 0.2
"""How long a point waits for the sample at either end: a sweep must not wait for a host that reads slowly."""


class DeviceWatch:
    """Adds up the samples of each point, from one taken at its begin to one taken at its end.

    `observe` is called with every step by the thread that samples, `begin` and `end` by the one that measures. What
    adds up is imported by the first point: few who watch a host measure one.
    """

    def __init__(self, status: Callable[[], LoadStatus], sysfs: Path) -> None:
        self._status, self._sysfs = status, sysfs
        self._samples: RunSamples | None = None
        self._changed = threading.Condition()
        self._seen_ns = 0
        self._topology: Topology | None = None
        self._request: Callable[[], None] = lambda: None

    def attach(self, request: Callable[[], None]) -> None:
        """Set what asks the thread that samples for a sample ahead of schedule."""
        self._request = request

    def observe(self, step: Step) -> None:
        """Take a step."""
        if self._samples is not None:
            self._samples.observe(step)
        with self._changed:
            self._seen_ns = step.current.monotonic_ns
            self._topology = step.current.topology
            self._changed.notify_all()

    def host(self) -> dict[str, object] | None:
        """Facts of the host and of the disks below the targets now; None before the first sample."""
        from collectors.reports.host_facts import host_document  # noqa: PLC0415 (see the class)

        topology = self._topology
        return None if topology is None else host_document(topology, self._status(), self._sysfs)

    def begin(self) -> None:
        """Begin a point with a sample."""
        from collectors.reports.run_devices import RunSamples  # noqa: PLC0415 (see the class)

        if self._samples is None:
            self._samples = RunSamples()
        self._samples.begin(time.monotonic_ns())
        self._sample()

    def end(self) -> Observed | None:
        """End a point with a sample; None if there were not two of them."""
        from collectors.advice.point_devices import point_document  # noqa: PLC0415 (see the class)

        if self._samples is None:
            return None
        self._sample()
        self._samples.end()
        status = self._status()
        # Files below loop devices may be on the storage that does not respond.
        found = self._samples.below(status, self._sysfs, follow_files=not status.outstanding)
        return point_document(found)

    def _sample(self) -> None:
        asked_ns = time.monotonic_ns()
        self._request()
        with self._changed:
            self._changed.wait_for(lambda: self._seen_ns >= asked_ns, _SAMPLE_S)
