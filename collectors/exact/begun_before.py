"""I/Os that hang since before the programs were attached: nobody saw them begin, so that busy time has bounds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from collectors.model import Rows, Table
from collectors.tables.block.schema import TRACE

READINGS = 6
"""Readings at which the kernel must have had more I/Os in flight than were seen to begin. One is read after the other,
so that under load either may be larger: in nearly half of the readings at worst."""
_LOST, _IN_FLIGHT = TRACE.index("lost_in_driver_ns"), TRACE.index("in_flight_now")
_GAUGE_LIMIT = 1 << 31
"""Some kernels count I/Os in flight below 0."""


class BegunBefore:
    """Adds the time for which devices may have been busy with such I/Os to `lost_in_driver_ns` of the trace table."""

    def __init__(self) -> None:
        self._suspects: frozenset[str] | None = None
        """Keys of the devices that had more in flight at every reading so far."""
        self._readings = 0
        self._unknown_ns: dict[str, int] = {}
        self._read_ns = 0

    def add_to(self, trace: Table, disks: Rows, in_flight: NDArray[np.uint64], now_ns: int) -> None:
        """Take the kernel's counts of I/Os in flight, which were read just before; modifies the trace table."""
        suspects = self._suspects
        if suspects is None:
            suspects = frozenset(disks.keys[row] for row in np.flatnonzero(in_flight).tolist())
        self._suspects = frozenset(key for key in suspects if _is_larger(key, trace, disks, in_flight))
        elapsed_ns, self._read_ns = now_ns - self._read_ns, now_ns
        self._readings += 1
        positions = trace.rows.positions
        if self._readings >= READINGS:
            for key in self._suspects & positions.keys():
                self._unknown_ns[key] = self._unknown_ns.get(key, 0) + elapsed_ns
        for key in self._unknown_ns.keys() & positions.keys():
            trace.values[positions[key], _LOST] += np.uint64(self._unknown_ns[key])


def _is_larger(key: str, trace: Table, disks: Rows, in_flight: NDArray[np.uint64]) -> bool:
    position, row = disks.positions.get(key), trace.rows.positions.get(key)
    seen = 0 if row is None else int(trace.values[row, _IN_FLIGHT])
    return position is not None and seen < int(in_flight[position]) < _GAUGE_LIMIT
