"""Per-second series of a running load, collected from samples."""

from __future__ import annotations

import resource

import numpy as np
from msgspec.structs import replace

from collectors.model import Histograms, Rows, Step, Table
from collectors.sources.load import SERIES, SERVICE
from collectors.tables.load.schema import LOAD
from engine.results.histogram import merge
from engine.results.measured import DirectionDelta, LoadInterval, ProcessUse
from engine.running.group_reading import named

_SECOND_NS = 1e9


class LoadSeries:
    """Collects the intervals of the last load; `observe` is called with every step, from one thread."""

    def __init__(self, *, with_times: bool = False, load: str = "") -> None:
        """Begin; `with_times` keeps the times of the I/Os of each interval as well, some KiB for each.

        `load` is the name of one of several loads that run at once, whose rows bear it.
        """
        self._with_times = with_times
        self._prefix = named(load, "")
        self._start: LoadInterval | None = None
        """What was done until the first sample of the load, whose counters began at 0; its length is not known here."""
        self._used: resource.struct_rusage | None = None
        self._intervals: list[LoadInterval] = []
        self._first_ns = 0
        self._last: tuple[Table, int, resource.struct_rusage] | None = None

    def between(self, started_ns: int, ended_ns: int) -> tuple[LoadInterval, ...]:
        """Intervals within one epoch, by time, for a load that began and ended then by the monotonic clock.

        From its counters of 0 to its end every I/O is in one of them, by counters and by histograms, which are read one
        after the other: between any other two samples they differ by what completes meanwhile. The last sample is taken
        a moment after the end: the interval before it is shorter by that.
        """
        start, length_s = self._start, (self._first_ns - started_ns) / _SECOND_NS
        first = [replace(start, length_s=length_s)] if start is not None and started_ns and length_s > 0 else []
        if not (first or self._intervals):
            return ()
        *earlier, last = [*first, *self._intervals]
        late_s = last.end_s - (ended_ns - self._first_ns) / _SECOND_NS
        if 0 < late_s < last.length_s:
            last = replace(last, end_s=last.end_s - late_s, length_s=last.length_s - late_s)
        return (*earlier, last)

    def observe(self, step: Step) -> None:
        """Add the interval since the previous step."""
        table, now_ns = self._own(step.current.tables.get(LOAD.name)), step.current.monotonic_ns
        earlier, used = self._used, resource.getrusage(resource.RUSAGE_SELF)
        self._used = used
        if table is None or not len(table.rows):
            self._last = None
            return
        if self._prefix and not table.column("active").any():
            return  # it has ended, others beside it have not
        if self._last is not None and self._last[0].rows.keys == table.rows.keys:
            before, before_ns, used_before = self._last
            epoch = int(table.column("epoch").max())
            if epoch == int(before.column("epoch").max()) and now_ns > before_ns:
                self._intervals.append(
                    LoadInterval(
                        epoch,
                        (now_ns - self._first_ns) / _SECOND_NS,
                        (now_ns - before_ns) / _SECOND_NS,
                        _direction_delta(before, table, "read", self._times(step, table)),
                        _direction_delta(before, table, "write", self._times(step, table)),
                        _used(used_before, used),
                    )
                )
        else:
            self._intervals, self._first_ns = [], now_ns
            self._start = self._until_first(table, step, _used(earlier or used, used))
        self._last = table, now_ns, used

    def _until_first(self, table: Table, step: Step, used: ProcessUse) -> LoadInterval | None:
        if table.column("epoch").max() > 0:
            return None  # knobs were turned meanwhile
        none = Table(table.schema, table.rows, np.zeros_like(table.values))
        read, write = (_direction_delta(none, table, way, self._times(step, table)) for way in SERIES)
        return LoadInterval(0, 0.0, 0.0, read, write, used)

    def _own(self, table: Table | None) -> Table | None:
        """Choose the rows of the load."""
        if table is None or not self._prefix:
            return table
        chosen = [row for row, name in enumerate(table.rows.names) if name.startswith(self._prefix)]
        rows = Rows(*(tuple(each[row] for row in chosen) for each in (table.rows.keys, table.rows.names)))
        return Table(table.schema, rows, table.values[chosen])

    def _times(self, step: Step, own: Table) -> Histograms | None:
        """Choose the times from submit to reap, which an open loop has besides its latencies."""
        if not self._with_times:
            return None
        found = [step.current.histograms.get(name) for name in (SERVICE, LOAD.name)]
        each = [_of_rows(one, own.rows) if self._prefix else one for one in found if one is not None]
        # Only those of several loads that have an open loop have both.
        return next((one for one in each if len(one.row)), each[-1] if each else None)


def _of_rows(histograms: Histograms, rows: Rows) -> Histograms:
    kept = np.isin(histograms.row, [row for row, key in enumerate(histograms.rows.keys) if key in rows.positions])
    return replace(
        histograms,
        row=histograms.row[kept],
        series_index=histograms.series_index[kept],
        bucket=histograms.bucket[kept],
        count=histograms.count[kept],
    )


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
