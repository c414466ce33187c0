"""When waits for tags are worth watching: they cost two more probes for every I/O."""

from __future__ import annotations

import numpy as np

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
        """Whether the probes are to be on, by the most requests each driver held since the last tick."""
        if self._of is None or self._of[0] is not trace.rows or self._of[1] is not topology:
            self._of = trace.rows, topology
            self._limits = np.array([_limit(topology, key) for key in trace.rows.keys], np.float64)
        peaks = trace.column("in_driver_peak")
        full = (peaks >= self._limits) & (peaks < 1 << 31)
        self._left = STAY_TICKS if full.any() else max(0, self._left - 1)
        return self._left > 0 if self.wanted is None else self.wanted


def _limit(topology: Topology, key: str) -> float:
    """Tell how many requests a queue admits (queue/nr_requests): one more has to wait for a tag."""
    device = topology.devices.get(key)
    return np.inf if device is None or not device.nr_requests else float(device.nr_requests)
