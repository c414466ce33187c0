"""Per-second series of a running load, collected from samples."""

from __future__ import annotations

import resource

import numpy as np

from collectors.model import Step, Table
from collectors.tables.load.schema import LOAD
from engine.results.measured import DirectionDelta, LoadInterval

_SECOND_NS = 1e9


class LoadSeries:
    """Collects the intervals of the last load; `observe` is called with every step, from one thread."""

    def __init__(self) -> None:
        self._intervals: list[LoadInterval] = []
        self._first_ns = 0
        self._last: tuple[Table, int, resource.struct_rusage] | None = None

    @property
    def intervals(self) -> tuple[LoadInterval, ...]:
        """Intervals that lie within one epoch, by time."""
        return tuple(self._intervals)

    def observe(self, step: Step) -> None:
        """Add the interval since the previous step."""
        table, now_ns = step.current.tables.get(LOAD.name), step.current.monotonic_ns
        if table is None or not len(table.rows):
            self._last = None
            return
        used = resource.getrusage(resource.RUSAGE_SELF)
        if self._last is not None and self._last[0].rows.keys == table.rows.keys:
            before, before_ns, used_before = self._last
            epoch = int(table.column("epoch").max())
            if epoch == int(before.column("epoch").max()) and now_ns > before_ns:
                self._intervals.append(
                    LoadInterval(
                        epoch,
                        (now_ns - self._first_ns) / _SECOND_NS,
                        (now_ns - before_ns) / _SECOND_NS,
                        _direction_delta(before, table, "read"),
                        _direction_delta(before, table, "write"),
                        used.ru_utime - used_before.ru_utime,
                        used.ru_stime - used_before.ru_stime,
                    )
                )
        else:
            self._intervals, self._first_ns = [], now_ns
        self._last = table, now_ns, used


def _direction_delta(before: Table, after: Table, direction: str) -> DirectionDelta:
    columns = (f"{direction}_ios", f"{direction}_bytes", f"{direction}_latency_ns")
    sums = (
        int(after.column(column).sum(dtype=np.uint64) - before.column(column).sum(dtype=np.uint64))
        for column in columns
    )
    return DirectionDelta(*sums)
