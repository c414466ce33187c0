"""Per-second series of a running load, collected from samples."""

from __future__ import annotations

import resource

import numpy as np
from msgspec.structs import replace

from collectors.model import Histograms, Step, Table
from collectors.sources.load import SERIES, SERVICE
from collectors.tables.load.schema import LOAD
from engine.results.histogram import merge
from engine.results.measured import DirectionDelta, LoadInterval, ProcessUse

_SECOND_NS = 1e9


class LoadSeries:
    """Collects the intervals of the last load; `observe` is called with every step, from one thread."""

    def __init__(self, *, with_times: bool = False) -> None:
        """Begin; `with_times` keeps the times of the I/Os of each interval as well, some KiB for each."""
        self._with_times = with_times
        self._intervals: list[LoadInterval] = []
        self._first_ns = 0
        self._last: tuple[Table, int, resource.struct_rusage] | None = None

    def until(self, ended_ns: int) -> tuple[LoadInterval, ...]:
        """Intervals that lie within one epoch, by time, of a load that ended then by the monotonic clock.

        The last sample is taken a moment after the end: the interval before it is shorter by that.
        """
        if not self._intervals:
            return ()
        *earlier, last = self._intervals
        late_s = last.end_s - (ended_ns - self._first_ns) / _SECOND_NS
        if 0 < late_s < last.length_s:
            last = replace(last, end_s=last.end_s - late_s, length_s=last.length_s - late_s)
        return (*earlier, last)

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
                        _direction_delta(before, table, "read", self._times(step)),
                        _direction_delta(before, table, "write", self._times(step)),
                        _used(used_before, used),
                    )
                )
        else:
            self._intervals, self._first_ns = [], now_ns
        self._last = table, now_ns, used

    def _times(self, step: Step) -> Histograms | None:
        """Choose the times from submit to reap, which an open loop has besides its latencies."""
        if not self._with_times:
            return None
        histograms = step.current.histograms
        return histograms.get(SERVICE) or histograms.get(LOAD.name)


def _used(before: resource.struct_rusage, after: resource.struct_rusage) -> ProcessUse:
    return ProcessUse(
        after.ru_utime - before.ru_utime,
        after.ru_stime - before.ru_stime,
        after.ru_nvcsw + after.ru_nivcsw - before.ru_nvcsw - before.ru_nivcsw,
        after.ru_majflt - before.ru_majflt,
        after.ru_minflt - before.ru_minflt,
    )


def _direction_delta(before: Table, after: Table, direction: str, times: Histograms | None) -> DirectionDelta:
    columns = (f"{direction}_ios", f"{direction}_bytes", f"{direction}_latency_ns")
    ios, size_bytes, latency_ns = (
        int(after.column(column).sum(dtype=np.uint64) - before.column(column).sum(dtype=np.uint64))
        for column in columns
    )
    return DirectionDelta(ios, size_bytes, latency_ns, {} if times is None else _cells(times, SERIES.index(direction)))


def _cells(times: Histograms, series: int) -> dict[int, int]:
    wanted = times.series_index == series
    buckets, counts = merge(times.bucket[wanted], times.count[wanted])
    return dict(zip(buckets.tolist(), counts.tolist(), strict=True))
