"""How long disks have had I/Os outstanding and completed none: the `stalled_ms` of the DISK table."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from collectors.derive.counter_deltas import positions
from collectors.model import Rows, Table
from collectors.tables.block.schema import DISK

_STALLED = DISK.index("stalled_ms")
_IN_FLIGHT = DISK.index("in_flight_now")
_COMPLETED = [DISK.index(name) for name in ("reads", "writes", "discards", "flushes")]
_Item = TypeVar("_Item", bound=np.generic)
_GAUGE_LIMIT = np.uint64(1 << 31)
"""Some kernels print a count that is briefly negative as unsigned."""


def has_outstanding(values: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Say of each row of the DISK table whether it has I/Os outstanding."""
    in_flight = values[:, _IN_FLIGHT]
    outstanding: NDArray[np.bool_] = (in_flight > 0) & (in_flight < _GAUGE_LIMIT)
    return outstanding


class StallClock:
    """Follows every disk from sample to sample.

    A stretch without completions begins when the counters of its first sample had been read, and is as long as until
    those of the present one were about to be: never longer than it was, and shorter by one interval at most.
    """

    def __init__(self) -> None:
        self._rows = Rows((), ())
        self._waiting = np.zeros(0, np.bool_)
        """Disks that had I/Os outstanding at the last sample."""
        self._completed = np.zeros(0, np.uint64)
        self._since_ns = np.zeros(0, np.int64)

    def fill(self, table: Table, begun_ns: int, ended_ns: int) -> None:
        """Write the column of a table whose counters were read between two times (CLOCK_MONOTONIC)."""
        self._follow(table.rows)
        waiting = has_outstanding(table.values)
        at = np.flatnonzero(waiting)
        completed = table.values[at[:, np.newaxis], _COMPLETED].sum(axis=1)
        going_on = self._waiting[at] & (completed == self._completed[at])
        self._since_ns[at[~going_on]] = ended_ns
        self._completed[at], self._waiting = completed, waiting
        table.values[:, _STALLED] = 0
        table.values[at, _STALLED] = (np.maximum(begun_ns - self._since_ns[at], 0) // 1_000_000).astype(np.uint64)

    def _follow(self, rows: Rows) -> None:
        if rows is self._rows:
            return
        at = positions(self._rows, rows.keys)
        known = at >= 0
        self._waiting = _moved(self._waiting, at, known)
        self._completed = _moved(self._completed, at, known)
        self._since_ns = _moved(self._since_ns, at, known)
        self._rows = rows


def _moved(values: NDArray[_Item], at: NDArray[np.intp], known: NDArray[np.bool_]) -> NDArray[_Item]:
    """Put values into the order of other rows; 0 for new ones."""
    moved = np.zeros(len(at), values.dtype)
    moved[known] = values[at[known]]
    return moved
