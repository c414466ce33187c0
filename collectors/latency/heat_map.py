"""Heat map of latency over time: histogram cells counted into columns and rows."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.derive.percentiles import bucket_bounds_ns, bucket_midpoints_ns, minimum_ios
from collectors.latency.summary import SeriesCells, cells_of, peaks_ns
from collectors.latency.ticks import LatencyTicks
from collectors.model import HistogramScale

_Values = NDArray[np.float64]

OVERLAY_PERCENTS = (50.0, 99.0)
"""Percentiles drawn over the heat map, together with the peak."""


class LatencyRange(Struct, frozen=True):
    """Range of latencies of a heat map, with equal ratios from row to row."""

    low_ns: float
    high_ns: float


class HeatRows(Struct, frozen=True, eq=False):
    """Whole histogram buckets of each row, lowest row first: from `first` up to, not including, `after`.

    Rows end at bucket bounds, so that every count is a whole number of I/Os. Rows within one bucket are equal.
    """

    first: NDArray[np.int64]
    after: NDArray[np.int64]
    low_ns: _Values
    high_ns: _Values

    def __len__(self) -> int:
        return len(self.first)

    def row_of(self, latency_ns: _Values) -> NDArray[np.int64]:
        """Row of each latency; -1 below all rows and for NaN, `len` above them."""
        row = np.searchsorted(self.high_ns, latency_ns, side="right").astype(np.int64)
        return np.where(latency_ns >= self.low_ns[0], row, -1)


class HeatColumns(Struct, frozen=True, eq=False):
    """I/Os by column and row; a column contains the intervals that ended within one step of the time axis.

    `counts` has shape (columns, rows), and so has `at_most`: the I/Os in a cell, all cells under it and below all rows.
    `below` and `above` are the I/Os beyond the rows, `ios` all of a column.
    `percentiles_ns` has a row per entry of OVERLAY_PERCENTS; NaN where a column has too few I/Os.
    """

    rows: HeatRows
    starts_ns: NDArray[np.int64]
    ends_ns: NDArray[np.int64]
    seconds: _Values
    counts: NDArray[np.int64]
    at_most: NDArray[np.int64]
    below: NDArray[np.int64]
    above: NDArray[np.int64]
    ios: NDArray[np.int64]
    percentiles_ns: _Values
    peaks_ns: _Values

    def __len__(self) -> int:
        return len(self.ends_ns)


def heat_rows(scale: HistogramScale, span: LatencyRange, rows: int) -> HeatRows:
    """Divide a range of latencies into rows of whole buckets."""
    steps = np.arange(rows + 1) / rows
    edges_ns = span.low_ns * (span.high_ns / span.low_ns) ** steps
    edges = _nearest_edge(scale, edges_ns)
    first, after = edges[:-1], edges[1:]
    centre = bucket_of(scale, np.sqrt(edges_ns[:-1] * edges_ns[1:]))
    within = after <= first
    first, after = np.where(within, centre, first), np.where(within, centre + 1, after)
    return HeatRows(first, after, _begin_ns(scale, first), _begin_ns(scale, after))


def heat_columns(
    ticks: LatencyTicks, series: tuple[str, ...], column_of_tick: NDArray[np.int64], rows: HeatRows
) -> HeatColumns:
    """Count the I/Os of some series into columns.

    Args:
        ticks: histograms to show.
        series: series of them to show.
        column_of_tick: step of the time axis in which each interval ended; does not decrease.
        rows: result of `heat_rows`.
    """
    starts = np.concatenate(([0], np.flatnonzero(np.diff(column_of_tick)) + 1)).astype(np.intp)
    starts = starts[: len(ticks)]
    columns = len(starts)
    column = np.zeros(len(ticks), np.int64)
    column[starts[1:]] = 1
    column = np.cumsum(column, dtype=np.int64)
    cells = cells_of(ticks, series)
    reached, least = _running_counts(column, columns, cells)
    ios = reached[:, -1].astype(np.int64)

    def up_to(edge: NDArray[np.int64]) -> NDArray[np.int64]:
        return reached[:, np.clip(edge - least, 0, reached.shape[1] - 1)].astype(np.int64)

    at_most = up_to(rows.after)
    with np.errstate(invalid="ignore"):
        peaks = np.fmax.reduceat(peaks_ns(ticks, series, cells), starts) if columns else np.zeros(0)
    return HeatColumns(
        rows=rows,
        starts_ns=ticks.times_ns[starts] - ticks.spans_ns[starts],
        ends_ns=ticks.times_ns[np.append(starts[1:], len(ticks)) - 1] if columns else ticks.times_ns,
        seconds=(np.add.reduceat(ticks.spans_ns, starts) if columns else ticks.spans_ns) / 1e9,
        counts=at_most - up_to(rows.first),
        at_most=at_most,
        below=up_to(rows.first[:1])[:, 0],
        above=ios - at_most[:, -1],
        ios=ios,
        percentiles_ns=_percentiles(ticks.scale, reached, least, peaks),
        peaks_ns=peaks,
    )


def _running_counts(column_of_tick: NDArray[np.int64], columns: int, cells: SeriesCells) -> tuple[_Values, int]:
    """I/Os below each bucket edge by column, shape (columns, edges), and the bucket of the first edge.

    They are whole numbers, exact up to 2^53.
    """
    if not len(cells.bucket):
        return np.zeros((columns, 2)), 0
    least, most = int(cells.bucket.min()), int(cells.bucket.max())
    edges = most - least + 2
    # The I/Os of a bucket are below the edge after it: the first edge has none.
    position = (column_of_tick * edges + (1 - least))[cells.tick]
    position += cells.bucket
    counts = np.asarray(np.bincount(position, cells.count, columns * edges), np.float64)
    reached = counts.reshape(columns, edges)
    return np.cumsum(reached, axis=1, out=reached), least


def _percentiles(scale: HistogramScale, reached: _Values, least: int, peaks: _Values) -> _Values:
    """Nearest-rank percentiles of every column, never above its peak; NaN where it has too few I/Os."""
    ios = reached[:, -1]
    result = np.full((len(OVERLAY_PERCENTS), len(ios)), np.nan)
    for position, percent in enumerate(OVERLAY_PERCENTS):
        rank = np.ceil(ios * round(percent * 1000) / 100_000)
        bucket = (reached[:, 1:] >= rank[:, None]).argmax(axis=1) + least
        midpoints = np.fmin(bucket_midpoints_ns(scale, bucket.astype(np.uint16)), peaks)
        result[position] = np.where(ios >= minimum_ios(percent), midpoints, np.nan)
    return result


def bucket_of(scale: HistogramScale, latency_ns: _Values) -> NDArray[np.int64]:
    """Bucket of each latency, as defined in HistogramScale."""
    units = np.maximum(latency_ns / scale.unit_ns, 0.0)
    exponent = np.frexp(np.maximum(units, 1.0))[1] - 1
    octave = np.maximum(exponent - scale.sub_bits, -1)
    linear = np.floor(units).astype(np.int64)
    upper = ((octave + 1) << scale.sub_bits) + np.floor(np.ldexp(units, -np.maximum(octave, 0))).astype(np.int64)
    return np.where(octave < 0, linear, upper - (1 << scale.sub_bits)).astype(np.int64)


def _nearest_edge(scale: HistogramScale, latency_ns: _Values) -> NDArray[np.int64]:
    """First bucket above the bucket boundary nearest to each latency."""
    bucket = bucket_of(scale, latency_ns)
    low, above = bucket_bounds_ns(scale, bucket.astype(np.uint16))
    return bucket + (latency_ns - low > above - latency_ns)


def _begin_ns(scale: HistogramScale, bucket: NDArray[np.int64]) -> _Values:
    return bucket_bounds_ns(scale, bucket.astype(np.uint16))[0]
