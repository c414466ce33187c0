"""Percentiles of sparse log-linear histograms; histograms of rows or intervals are merged by adding their cells."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.derive.counter_deltas import positions
from collectors.model import Histograms, HistogramScale, Rows
from engine import _native


def rows_of_cells(rows: Rows, histograms: Histograms) -> NDArray[np.intp]:
    """Row in `rows` of every cell, -1 for cells of rows that are missing there."""
    row = histograms.row.astype(np.intp)
    if histograms.rows is not rows:
        to_row = np.append(positions(rows, histograms.rows.keys), -1)
        row = to_row[np.minimum(row, len(histograms.rows))]
    found: NDArray[np.intp] = np.where(row < len(rows), row, -1)
    return found


_Values = NDArray[np.float64]

_LARGEST_OCTAVE = 63
"""Largest bucket used: those of a damaged recording may be beyond any finite time."""


class RowCells(Struct, frozen=True, eq=False):
    """Histogram cells of rows, without series: `count[i]` I/Os of `row[i]` fell into `bucket[i]`."""

    scale: HistogramScale
    row: NDArray[np.uint32]
    bucket: NDArray[np.uint16]
    count: NDArray[np.uint64]

    def together(self) -> RowCells:
        """Merge all cells into row 0, for the percentiles of all rows."""
        return RowCells(self.scale, np.zeros_like(self.row), self.bucket, self.count)


def cells_of(rows: Rows, histograms: Histograms) -> RowCells:
    """Return the cells of all series by the row order of a table; those of rows that are missing there are left out."""
    row = rows_of_cells(rows, histograms)
    kept = row >= 0
    return RowCells(histograms.scale, row[kept].astype(np.uint32), histograms.bucket[kept], histograms.count[kept])


def bucket_bounds_ns(scale: HistogramScale, bucket: NDArray[np.uint16]) -> tuple[_Values, _Values]:
    """Bounds of buckets in nanoseconds: the lowest value inside and the first value above; shape of `bucket`."""
    buckets = bucket.astype(np.int64)
    octave = np.maximum((buckets >> scale.sub_bits) - 1, 0)
    mantissa = buckets - (octave << scale.sub_bits)
    octave = np.minimum(octave, _LARGEST_OCTAVE)
    low = np.ldexp(mantissa.astype(np.float64), octave) * scale.unit_ns
    return low, low + np.ldexp(float(scale.unit_ns), octave)


def bucket_midpoints_ns(scale: HistogramScale, bucket: NDArray[np.uint16]) -> _Values:
    """Midpoint of each bucket in whole nanoseconds; exact for a bucket of one nanosecond."""
    low, above = bucket_bounds_ns(scale, bucket)
    return (low + above - 1.0) / 2.0


def minimum_ios(percent: float) -> int:
    """I/Os a percentile needs so that one is expected beyond it: 100 for p99, 1,000 for p99.9, 1 up to p50."""
    return 1 if percent <= 50 else round(100.0 / (100.0 - percent))


def percentiles_ns(cells: RowCells, rows: int, percents: Sequence[float]) -> _Values:
    """Nearest-rank percentiles of every row: the midpoint of the bucket that holds the I/O of that rank.

    Cells may be in any order and repeat; cells of rows from `rows` on are ignored.

    Returns:
        Nanoseconds, shape (len(percents), rows); NaN where a row has fewer I/Os than `minimum_ios`.
    """
    return _native.percentiles(
        np.ascontiguousarray(cells.row),
        np.ascontiguousarray(cells.bucket),
        np.ascontiguousarray(cells.count),
        rows,
        [(round(percent * 1000), minimum_ios(percent)) for percent in percents],
        cells.scale.unit_ns,
        cells.scale.sub_bits,
    )


def merged(parts: Sequence[Histograms]) -> Histograms:
    """Add histograms of any intervals and rows: one cell per row, series and bucket, rows by order of appearance.

    Raises:
        ValueError: no parts, or their scales differ.
    """
    if len({part.scale for part in parts}) != 1:
        raise ValueError("histograms of different scales cannot be added" if parts else "no histograms to add")
    keys, names = _union(parts)
    series = tuple(dict.fromkeys(name for part in parts for name in part.series))
    cells = [_recoded(part, keys, series) for part in parts]
    code = np.concatenate([cell[0] for cell in cells])
    count = np.concatenate([cell[1] for cell in cells])
    code, cell_of = np.unique(code, return_inverse=True)
    total = np.zeros(len(code), np.uint64)
    np.add.at(total, cell_of, count)
    return Histograms(
        parts[0].scale,
        Rows(tuple(keys), names),
        series,
        (code >> 24).astype(np.uint32),
        (code >> 16 & 0xFF).astype(np.uint8),
        (code & 0xFFFF).astype(np.uint16),
        total,
    )


_MOST_PARTS = 64
"""Intervals whose histograms are merged at once."""


class AddedHistograms:
    """Adds up the histograms of intervals."""

    def __init__(self) -> None:
        self._parts: list[Histograms] = []

    def add(self, histograms: Histograms | None) -> None:
        """Add those of an interval; None if it has none."""
        if histograms is None or not len(histograms.count):
            return
        self._parts.append(histograms)
        if len(self._parts) >= _MOST_PARTS:
            self._parts = [merged(self._parts)]

    def total(self) -> Histograms | None:
        """Return the sum; None if there were none."""
        return merged(self._parts) if self._parts else None


def _union(parts: Sequence[Histograms]) -> tuple[dict[str, int], tuple[str, ...]]:
    """Keys of all parts with their positions, and their names."""
    names = {key: name for part in parts for key, name in zip(part.rows.keys, part.rows.names, strict=True)}
    return {key: position for position, key in enumerate(names)}, tuple(names.values())


def _recoded(
    part: Histograms, keys: dict[str, int], series: tuple[str, ...]
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Cells as one number each (row, series and bucket of the union), and their counts."""
    known = (part.row < len(part.rows)) & (part.series_index < len(part.series))
    to_row = np.array([keys[key] for key in part.rows.keys], np.int64)
    to_series = np.array([series.index(name) for name in part.series], np.int64)
    row = to_row[part.row[known]] if len(to_row) else np.zeros(0, np.int64)
    which = to_series[part.series_index[known]] if len(to_series) else np.zeros(0, np.int64)
    return (row << 24) | (which << 16) | part.bucket[known], part.count[known]
