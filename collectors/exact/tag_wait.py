"""When waits for tags are worth watching: they cost two more probes for every I/O."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from collectors.model import Rows, Table, Topology

STAY_TICKS = 30
"""Ticks without a full queue after which the probes are taken off again."""


class TagWaitSwitch:
    """Says on while a queue is seen full, and some time after; the operator's word counts for more."""

    def __init__(self) -> None:
        self.wanted: bool | None = None
        """What the operator asked for; None leaves it to the queues."""
        self._left = 0
        self._limits = np.zeros(0)
        self._of: tuple[Rows, Topology] | None = None

    def decide(self, trace: Table, topology: Topology) -> bool:
        """Whether the probes are to be on, by the most requests each driver held since the last tick and those now."""
        if self._of is None or self._of[0] is not trace.rows or self._of[1] is not topology:
            self._of = trace.rows, topology
            self._limits = np.array([_limit(topology, key) for key in trace.rows.keys], np.float64)
        # A scheduler admits more requests than the driver holds: its queue is full with some of them waiting in it.
        full = any(self._is_full(trace.column(name)) for name in ("in_driver_peak", "in_flight_now"))
        self._left = STAY_TICKS if full else max(0, self._left - 1)
        return self._left > 0 if self.wanted is None else self.wanted

    def _is_full(self, requests: NDArray[np.uint64]) -> bool:
        return bool(((requests >= self._limits) & (requests < 1 << 31)).any())


def _limit(topology: Topology, key: str) -> float:
    """Tell how many requests a queue admits (queue/nr_requests): one more has to wait for a tag."""
    device = topology.devices.get(key)
    return np.inf if device is None or not device.nr_requests else float(device.nr_requests)
