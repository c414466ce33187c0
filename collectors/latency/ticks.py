"""Latencies of one subject by tick, in arrays that grow at the end: the input of a heat map."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.latency.subjects import LatencySubject
from collectors.model import MISSING, Histograms, HistogramScale, Rows, Table
from engine import _native
from engine.replacing import replace

Item = TypeVar("Item", bound=np.generic)

PEAK_COLUMNS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "load": {"read_peak_ns": ("read",), "write_peak_ns": ("write",)},
    "trace": {
        "queue_max_ns": ("queue_read", "queue_write"),
        "service_max_ns": ("service_read", "service_write"),
        "latency_max_ns": ("total",),
    },
    "nfs_latency": {
        "queue_max_ns": ("queue_read", "queue_write", "queue_other"),
        "rtt_max_ns": ("rtt_read", "rtt_write", "rtt_other"),
        "execute_max_ns": ("read", "write", "other"),
    },
}
"""Columns of the table of a source with the exact largest latency of an interval, and the series of each.

There is a peak of queue and service time together, but no histogram of them."""

MOST_TICKS = 3600
MOST_CELLS = 1 << 20
"""Histogram cells stored per subject: 12 MiB; a busy second of the engine fills some hundred."""


class RowPeaks(Struct, frozen=True, eq=False):
    """Exact peaks of an interval, for rows that had any: `peak_ns` has shape (len(row), columns), float64."""

    rows: Rows
    columns: tuple[str, ...]
    row: NDArray[np.int64]
    peak_ns: NDArray[np.float64]


class PackedPeaks(Struct, frozen=True, eq=False):
    """Peaks of an interval, compressed."""

    rows: Rows
    columns: tuple[str, ...]
    count: int
    data: bytes

    @property
    def peaks(self) -> RowPeaks:
        """The peaks as they were packed."""
        columns = 1 + len(self.columns)
        data = _native.decompress(self.data, self.count * columns * np.dtype(np.int64).itemsize)
        row, *peaks = np.frombuffer(data, np.int64).reshape(columns, self.count)
        peak_ns = np.array(peaks, np.float64).reshape(len(peaks), self.count).T
        return RowPeaks(self.rows, self.columns, row, peak_ns)


def pack_peaks(peaks: RowPeaks) -> PackedPeaks:
    """Compress peaks, which are whole nanoseconds."""
    values = np.concatenate([peaks.row[:, np.newaxis], peaks.peak_ns], axis=1).astype(np.int64)
    return PackedPeaks(peaks.rows, peaks.columns, len(values), _native.compress(values.T.tobytes()))


class LatencyTick(Struct, frozen=True, eq=False):
    """Histograms and peaks of one source in the interval that ended at `time_ns` and lasted `span_ns`."""

    time_ns: int
    span_ns: int
    histograms: Histograms
    peaks: RowPeaks


def row_peaks(source: str, table: Table | None) -> RowPeaks:
    """Extract the exact peaks of a raw table; no rows if the source has none."""
    known = {column.id for column in table.schema.columns} if table is not None else set()
    columns = tuple(column for column in PEAK_COLUMNS.get(source, {}) if column in known)
    if table is None or not columns:
        return RowPeaks(Rows((), ()), (), np.zeros(0, np.int64), np.zeros((0, 0)))
    raw = np.stack([table.column(column) for column in columns], axis=1)
    raw = np.where(raw == MISSING, 0, raw)
    if "unstamped" in known:
        # Without queue times the whole time is unknown; sources without queue times have no unstamped I/Os.
        unknown = (table.column("unstamped") > 0) & (raw[:, columns.index("queue_max_ns")] == 0)
        raw[unknown, columns.index("latency_max_ns")] = 0
    row = np.flatnonzero(raw.any(axis=1))
    return RowPeaks(table.rows, columns, row, raw[row].astype(np.float64))


class LatencyTicks(Struct, frozen=True, eq=False):
    """Histogram cells of one subject over many intervals, oldest first.

    Interval i ended at `times_ns[i]`, lasted `spans_ns[i]` and has the cells from `first_cell[i]` up to, not including,
    `first_cell[i + 1]`, one for each series and bucket; without cells it had no I/O. Times do not decrease.
    `peaks_ns` has a column per entry of `peak_columns`, 0 where there was none.
    """

    source: str
    scale: HistogramScale
    series: tuple[str, ...]
    times_ns: NDArray[np.int64]
    spans_ns: NDArray[np.int64]
    first_cell: NDArray[np.int64]
    series_index: NDArray[np.uint8]
    bucket: NDArray[np.uint16]
    count: NDArray[np.uint64]
    peak_columns: tuple[str, ...]
    peaks_ns: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.times_ns)

    def between(self, start_ns: int, end_ns: int) -> LatencyTicks:
        """Select the intervals that ended after `start_ns` and no later than `end_ns`."""
        first, last = np.searchsorted(self.times_ns, (start_ns, end_ns), side="right")
        cells = slice(int(self.first_cell[first]), int(self.first_cell[last]))
        return replace(
            self,
            times_ns=self.times_ns[first:last],
            spans_ns=self.spans_ns[first:last],
            first_cell=self.first_cell[first : last + 1] - self.first_cell[first],
            series_index=self.series_index[cells],
            bucket=self.bucket[cells],
            count=self.count[cells],
            peaks_ns=self.peaks_ns[first:last],
        )

    def exact_peaks_ns(self, series: tuple[str, ...]) -> NDArray[np.float64]:
        """Largest latency of each interval over some series, NaN without I/O or without a counter.

        A peak counter that also covers other series is not used.
        """
        wanted = set(series)
        covers = PEAK_COLUMNS.get(self.source, {})
        used = [number for number, column in enumerate(self.peak_columns) if wanted.issuperset(covers[column])]
        covered = {name for number in used for name in covers[self.peak_columns[number]]}
        if covered != wanted or not used:
            return np.full(len(self), np.nan)
        largest = self.peaks_ns[:, used].max(axis=1, initial=0.0)
        return np.where(largest > 0, largest, np.nan)


class LatencyTrack:
    """Collects the cells of one subject from ticks of all rows; has one owner.

    Arrays are only appended to, so a returned view stays valid while the track grows.
    """

    def __init__(self, subject: LatencySubject, scale: HistogramScale, series: tuple[str, ...]) -> None:
        self.subject = subject
        self.scale = scale
        self.series = series
        self._peak_columns = tuple(PEAK_COLUMNS.get(subject.source, {}))
        self._times = _GrowableArray(np.int64)
        self._spans = _GrowableArray(np.int64)
        self._first = _GrowableArray(np.int64)
        self._first.extend(np.zeros(1, np.int64))
        self._series = _GrowableArray(np.uint8)
        self._bucket = _GrowableArray(np.uint16)
        self._count = _GrowableArray(np.uint64)
        self._peaks = _GrowableArray(np.float64)
        self._chooser = _Chooser(subject)

    def add(self, tick: LatencyTick) -> None:
        """Add an interval; one in which the subject did not exist is a gap."""
        chosen = self._chooser.of(tick.histograms.rows)
        if not chosen.any():
            return
        cells = tick.histograms
        mine = chosen[np.minimum(cells.row, len(chosen) - 1)]
        # A damaged recording may name series that it has not.
        kept = np.flatnonzero(mine & (cells.series_index < len(self.series)))
        times = self._times.values
        time_ns = max(tick.time_ns, int(times[-1]) if len(times) else tick.time_ns)
        self._times.extend(np.array([time_ns], np.int64))
        self._spans.extend(np.array([tick.span_ns], np.int64))
        series, bucket, count = _added_up(cells.series_index[kept], cells.bucket[kept], cells.count[kept])
        self._first.extend(np.array([len(self._bucket.values) + len(count)], np.int64))
        self._series.extend(series)
        self._bucket.extend(bucket)
        self._count.extend(count)
        self._peaks.extend(self._own_peaks(tick.peaks))
        if len(self._times.values) > MOST_TICKS * 5 // 4 or len(self._bucket.values) > MOST_CELLS * 5 // 4:
            self._forget()

    def view(self) -> LatencyTicks:
        """All stored intervals."""
        return LatencyTicks(
            self.subject.source,
            self.scale,
            self.series,
            self._times.values,
            self._spans.values,
            self._first.values,
            self._series.values,
            self._bucket.values,
            self._count.values,
            self._peak_columns,
            self._peaks.values.reshape(len(self._times.values), len(self._peak_columns)),
        )

    def _own_peaks(self, peaks: RowPeaks) -> NDArray[np.float64]:
        own = np.zeros(len(self._peak_columns))
        if peaks.columns and len(peaks.row):
            mine = peaks.peak_ns[self._chooser.of(peaks.rows)[peaks.row]]
            for number, column in enumerate(peaks.columns):
                own[self._peak_columns.index(column)] = mine[:, number].max(initial=0.0)
        return own

    def _forget(self) -> None:
        """Drop the oldest fifth at once, so that this is not needed at every tick."""
        first = self._first.values
        oldest = max(len(first) - 1 - MOST_TICKS, int(np.searchsorted(first, int(first[-1]) - MOST_CELLS)))
        cells = int(first[oldest])
        self._times = self._times.without(oldest)
        self._spans = self._spans.without(oldest)
        self._peaks = self._peaks.without(oldest * len(self._peak_columns))
        rest = first[oldest:] - cells
        self._first = _GrowableArray(np.int64)
        self._first.extend(rest)
        self._series, self._bucket = self._series.without(cells), self._bucket.without(cells)
        self._count = self._count.without(cells)


def _added_up(
    series: NDArray[np.uint8], bucket: NDArray[np.uint16], count: NDArray[np.uint64]
) -> tuple[NDArray[np.uint8], NDArray[np.uint16], NDArray[np.uint64]]:
    """Add the cells of all rows: one for each series and bucket, which for many disks are a tenth as many."""
    if not len(count):
        return series, bucket, count
    buckets = int(bucket.max()) + 1
    total = np.zeros((int(series.max()) + 1) * buckets, np.uint64)
    np.add.at(total, series.astype(np.intp) * buckets + bucket, count)
    cell = np.flatnonzero(total)
    return (cell // buckets).astype(np.uint8), (cell % buckets).astype(np.uint16), total[cell]


class _Chooser:
    """Selects the rows of the subject; cached per set of rows."""

    def __init__(self, subject: LatencySubject) -> None:
        self._subject = subject
        self._known: list[tuple[Rows, NDArray[np.bool_]]] = []

    def of(self, rows: Rows) -> NDArray[np.bool_]:
        """Mask over the rows with a trailing false, for cells of a missing row."""
        for known, mask in self._known:
            if known is rows:
                return mask
        mask = np.zeros(len(rows) + 1, np.bool_)
        keys = self._subject.keys
        if any(self._subject.ends):
            mask[:-1] = [self._subject.has(key) for key in rows.keys]
        elif keys:
            mask[[rows.positions[key] for key in keys if key in rows.positions]] = True
        else:
            mask[:-1] = True
        self._known = [*self._known[-1:], (rows, mask)]
        return mask


class _GrowableArray(Generic[Item]):
    """An array that grows at its end."""

    def __init__(self, dtype: type[Item]) -> None:
        self._dtype = dtype
        self._room: NDArray[Item] = np.zeros(64, dtype)
        self._used = 0

    @property
    def values(self) -> NDArray[Item]:
        return self._room[: self._used]

    def extend(self, values: NDArray[Item]) -> None:
        needed = self._used + len(values)
        if needed > len(self._room):
            room = np.zeros(max(needed, 2 * len(self._room)), self._dtype)
            room[: self._used] = self._room[: self._used]
            self._room = room
        self._room[self._used : needed] = values
        self._used = needed

    def without(self, count: int) -> _GrowableArray[Item]:
        rest = _GrowableArray(self._dtype)
        rest.extend(self.values[count:])
        return rest
