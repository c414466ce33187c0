"""Latency summary of a time range: percentiles, average peak, and the largest latencies with their rows."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.derive.percentiles import RowCells, bucket_midpoints_ns, percentiles_ns
from collectors.latency.ticks import PEAK_COLUMNS, LatencyTick, LatencyTicks

PER_TICK = 3
"""Peaks stored per interval."""


class Peak(Struct, frozen=True):
    """The largest latency of one row in one interval."""

    time_ns: int
    """End of the interval."""
    latency_ns: float
    source: str
    key: str
    name: str
    what: str
    """Direction or part: read, write, queue, service or total."""


def peaks_of(tick: LatencyTick, source: str) -> Iterator[Peak]:
    """Yield the largest peaks of an interval, each row once, with its most relevant part or direction.

    A total is the whole time of an I/O, so parts are named only if the total is unknown.
    """
    peaks = tick.peaks
    if not len(peaks.row):
        return
    named = [_what(source, column) for column in peaks.columns]
    values = peaks.peak_ns
    if "total" in named:
        total = named.index("total")
        values = np.where((values[:, [total]] > 0) & (np.arange(len(named)) != total), 0.0, values)
    largest = values.max(axis=1)
    for position in np.argsort(-largest)[:PER_TICK]:
        if largest[position] > 0:
            row = int(peaks.row[position])
            what = named[int(values[position].argmax())]
            yield Peak(
                tick.time_ns, float(largest[position]), source, peaks.rows.keys[row], peaks.rows.names[row], what
            )


def largest(peaks: Iterable[Peak], most: int) -> list[Peak]:
    """Return the largest, in descending order."""
    return heapq.nlargest(most, peaks, key=lambda peak: (peak.latency_ns, peak.time_ns))


def _what(source: str, column: str) -> str:
    series = PEAK_COLUMNS[source][column]
    parts = {name.rpartition("_")[0] for name in series}
    if parts == {""}:
        return series[0] if len(series) == 1 else "total"
    return parts.pop()


SECOND_NS = 1_000_000_000
PERCENTS = (50.0, 99.0, 99.9)


class LatencySummary(Struct, frozen=True):
    """One time range; NaN where there were too few I/Os, or none."""

    ios: int
    p50_ns: float
    p99_ns: float
    p999_ns: float
    max_ns: float
    average_peak_ns: float
    """Mean of the largest latency of every second, or of every interval if those are longer."""
    peaks: int
    """Number of them."""


class SeriesCells(Struct, frozen=True, eq=False):
    """Cells of some series: interval, bucket and I/Os of each."""

    tick: NDArray[np.intp]
    bucket: NDArray[np.uint16]
    count: NDArray[np.uint64]


def cells_of(ticks: LatencyTicks, series: Sequence[str]) -> SeriesCells:
    """Select the cells of some series."""
    tick = np.repeat(np.arange(len(ticks)), np.diff(ticks.first_cell))
    kept = _kept_cells(ticks, series)
    return SeriesCells(tick[kept], ticks.bucket[kept], ticks.count[kept])


def buckets_of(ticks: LatencyTicks, series: Sequence[str]) -> NDArray[np.uint16]:
    """Select the buckets of the cells of some series."""
    return ticks.bucket[_kept_cells(ticks, series)]


def _kept_cells(ticks: LatencyTicks, series: Sequence[str]) -> NDArray[np.bool_] | slice:
    """Find the cells of some series."""
    if set(series) >= set(ticks.series):
        return slice(None)
    return np.array([name in series for name in ticks.series])[ticks.series_index]


def means_ns(ticks: LatencyTicks, series: Sequence[str]) -> NDArray[np.float64]:
    """Mean of some series in each interval, by the midpoints of their buckets; NaN without I/O."""
    cells = cells_of(ticks, series)
    count = cells.count.astype(np.float64)
    ios = np.bincount(cells.tick, count, len(ticks))
    # There are many times as many cells as buckets.
    buckets = np.arange(int(cells.bucket.max(initial=0)) + 1, dtype=np.uint16)
    middle_ns = bucket_midpoints_ns(ticks.scale, buckets)[cells.bucket]
    sums = np.bincount(cells.tick, count * middle_ns, len(ticks))
    means: NDArray[np.float64] = np.divide(sums, ios, out=np.full(len(ticks), np.nan), where=ios > 0)
    return means


def peaks_ns(ticks: LatencyTicks, series: tuple[str, ...], cells: SeriesCells) -> NDArray[np.float64]:
    """Largest latency of each interval: the exact counter, else the midpoint of the highest bucket, else NaN."""
    exact = ticks.exact_peaks_ns(series)
    without_peak = np.isnan(exact) & (np.diff(ticks.first_cell) > 0)
    if not without_peak.any():
        return exact
    of_these = without_peak[cells.tick]
    highest = np.full(len(ticks), -1, np.int64)
    np.maximum.at(highest, cells.tick[of_these], cells.bucket[of_these].astype(np.int64))
    middle = bucket_midpoints_ns(ticks.scale, np.maximum(highest, 0).astype(np.uint16))
    return np.where(highest < 0, exact, middle)


def summarize(ticks: LatencyTicks, series: tuple[str, ...]) -> LatencySummary:
    """Summarize a time range; percentiles are those of the sum of all its histograms."""
    cells = cells_of(ticks, series)
    count = np.bincount(cells.bucket, cells.count).astype(np.uint64)
    bucket = np.flatnonzero(count)
    together = RowCells(ticks.scale, np.zeros(len(bucket), np.uint32), bucket.astype(np.uint16), count[bucket])
    found = percentiles_ns(together, 1, PERCENTS)[:, 0]
    peaks = peaks_ns(ticks, series, cells)
    largest = _largest(peaks)
    p50, p99, p999 = (float(min(value, largest)) if value == value else value for value in found)  # noqa: PLR0124 - NaN
    by_second = _by_second(ticks.times_ns, peaks)
    average = float(by_second.mean()) if len(by_second) else float("nan")
    return LatencySummary(int(count.sum()), p50, p99, p999, largest, average, len(by_second))


def _by_second(times_ns: NDArray[np.int64], peaks: NDArray[np.float64]) -> NDArray[np.float64]:
    """Largest latency of each second with any."""
    known = ~np.isnan(peaks)
    if not known.any():
        return np.zeros(0)
    second = times_ns[known] // SECOND_NS
    starts = np.concatenate(([0], np.flatnonzero(np.diff(second)) + 1))
    result: NDArray[np.float64] = np.maximum.reduceat(peaks[known], starts)
    return result


def _largest(values: NDArray[np.float64]) -> float:
    known = values[~np.isnan(values)]
    return float(known.max()) if len(known) else float("nan")
