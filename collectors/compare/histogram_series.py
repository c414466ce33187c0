"""Histograms of all rows over time, in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collectors.derive.percentiles import bucket_bounds_ns, merged
from collectors.latency.subjects import Direction, LatencySubject, Part, series_of
from collectors.model import Histograms, HistogramScale
from engine.statistics.percentile_difference import HistogramBlocks

_MOST_CELLS = 64
"""Times stored; when there are more, neighbours are merged. The bootstrap needs 20 blocks."""
_NS_PER_MS = 1e6


class HistogramSeries:
    """Collects the histograms of one source, interval by interval, each cell `per_cell` intervals merged."""

    def __init__(self) -> None:
        self._cells: list[Histograms] = []
        self._open: list[Histograms] = []
        self._per_cell = 1
        self._ends_ns: list[int] = []
        self._scale: HistogramScale | None = None

    def add(self, histograms: Histograms, end_ns: int) -> None:
        """Add the cells of an interval that ended at a monotonic time; those of another scale are left out."""
        self._scale = self._scale or histograms.scale
        if histograms.scale != self._scale:
            return
        self._open.append(histograms)
        if len(self._open) < self._per_cell:
            return
        self._cells.append(merged(self._open))
        self._ends_ns.append(end_ns)
        self._open = []
        if len(self._cells) == _MOST_CELLS:
            self._cells = [merged(self._cells[index : index + 2]) for index in range(0, _MOST_CELLS, 2)]
            self._ends_ns = self._ends_ns[1::2]
            self._per_cell *= 2

    def of(self, subject: LatencySubject, part: Part, after_ns: int) -> HistogramBlocks | None:
        """Histograms of a subject in milliseconds, a block per cell that ended after a time; None without any."""
        if self._scale is None:
            return None
        found = [
            _selected(cell, subject, part)
            for cell, end_ns in zip(self._cells, self._ends_ns, strict=True)
            if end_ns > after_ns
        ]
        if not found or not any(len(bucket) for bucket, _ in found):
            return None
        return _blocks(self._scale, found)


_Selected = tuple[np.ndarray[tuple[int], np.dtype[np.uint16]], np.ndarray[tuple[int], np.dtype[np.uint64]]]


def _selected(cell: Histograms, subject: LatencySubject, part: Part) -> _Selected:
    """Buckets and counts of the rows and series that belong to a subject."""
    wanted = series_of(cell.series, part, Direction.BOTH)
    of_series = np.array([name in wanted for name in cell.series], np.bool_)
    of_rows = np.array([not subject.keys or key in subject.keys for key in cell.rows.keys], np.bool_)
    if not (of_series.any() and of_rows.any()):
        return np.zeros(0, np.uint16), np.zeros(0, np.uint64)
    kept = of_series[cell.series_index] & of_rows[cell.row]
    return cell.bucket[kept], cell.count[kept]


def _blocks(scale: HistogramScale, found: Sequence[_Selected]) -> HistogramBlocks:
    buckets = np.unique(np.concatenate([bucket for bucket, _ in found]))
    counts = np.zeros((len(found), len(buckets)))
    for block, (bucket, count) in enumerate(found):
        np.add.at(counts[block], np.searchsorted(buckets, bucket), count.astype(np.float64))
    low, above = bucket_bounds_ns(scale, buckets)
    return HistogramBlocks(low / _NS_PER_MS, (above - low) / _NS_PER_MS, counts)
