"""Figures of all rows of a frame table, and histograms of all rows, over time, in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from collectors.derive.known_sums import Slots
from collectors.derive.percentiles import bucket_bounds_ns, merged
from collectors.field import Field
from collectors.latency.subjects import Direction, LatencySubject, series_of
from collectors.model import Frame, FrameTable, Histograms, HistogramScale, Part, Rows, Tier
from engine.statistics.percentile_difference import HistogramBlocks

MOST_CELLS = 256
"""Intervals stored for each figure; when there are more, neighbours are merged. Batch means need 20."""

Values = NDArray[np.float64]
_MOST_HISTOGRAMS = 64
"""Histograms stored; when there are more, neighbours are merged. The bootstrap needs 20 blocks."""
_NS_PER_MS = 1e6


class TableSeries:
    """Collects the figures of one table, interval by interval; a row that appears later has none before.

    Cells are weighted sums of `per_cell` intervals each: arrays of shape (cells, rows, fields).
    """

    def __init__(self, fields: Sequence[Field]) -> None:
        self.fields = tuple(fields)
        known = frozenset(field.id for field in fields)
        self._weights = [field.per if field.per in known else "" for field in fields]
        self._slots = Slots()
        self._at = np.zeros(0, np.intp)
        self._cells = 0
        self._inside = 0
        self.per_cell = 1
        self._sums = np.zeros((8, 0, len(fields)))
        self._totals = np.zeros((8, 0, len(fields)))
        self._tiers = np.zeros((8, 0, len(fields)), np.uint8)
        self._largest = np.zeros((0, len(fields)))
        self.varying: set[str] = set()
        """Ids of fields whose tier varies by row."""
        self.ends_ns: list[int] = []
        """Monotonic time at the end of each cell."""

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of all rows ever present."""
        return self._slots.rows.keys

    def add(self, frame: Frame, table: FrameTable) -> None:
        """Add the figures of an interval; its length must be known."""
        self._assign_slots(table.rows)
        if self._inside == 0:
            self._open_cell()
        values, weights = self._matrices(table, frame.elapsed_s)
        known = np.isfinite(values) & (weights > 0)
        cell, at = self._cells - 1, self._at
        self._sums[cell, at] += np.where(known, values * weights, 0.0)
        self._totals[cell, at] += np.where(known, weights, 0.0)
        self._largest[at] = np.fmax(self._largest[at], values)
        self._tiers[cell, at] = _lower(self._tiers[cell, at], np.where(known, self._tiers_of(table), 0))
        self.ends_ns[-1] = frame.monotonic_ns
        self._inside = (self._inside + 1) % self.per_cell

    def of(self, key: str, field: int) -> tuple[Values, Values, NDArray[np.uint8]]:
        """Values, weights and tiers of a figure by cell; NaN and 0 where it is not known. The tier is 0 without I/O."""
        slot, cells = self._slots.at(key), slice(self._cells)
        totals = self._totals[cells, slot, field]
        values = np.divide(self._sums[cells, slot, field], totals, out=np.full(self._cells, np.nan), where=totals > 0)
        return values, totals, self._tiers[cells, slot, field]

    def largest(self, key: str, field_id: str) -> float:
        """Largest value of a figure in any interval; NaN if it was never known."""
        positions = [position for position, field in enumerate(self.fields) if field.id == field_id]
        return float(self._largest[self._slots.at(key), positions[0]]) if positions else float("nan")

    def _matrices(self, table: FrameTable, elapsed_s: float) -> tuple[Values, Values]:
        nothing = np.full(len(table.rows), np.nan)
        columns = [table.columns.get(field.id, nothing) for field in self.fields]
        lengths = np.full(len(table.rows), elapsed_s)
        weights = [
            lengths if not weight else elapsed_s * table.columns.get(weight, nothing) for weight in self._weights
        ]
        return np.stack(columns, axis=1), np.nan_to_num(np.stack(weights, axis=1), posinf=0.0)

    def _tiers_of(self, table: FrameTable) -> NDArray[np.uint8]:
        """Tier of each figure of a row that did I/O; idle rows have exact zeros at any tier."""
        tiers = [table.tiers.get(field.id, np.full(len(table.rows), field.tier, np.uint8)) for field in self.fields]
        self.varying.update(table.tiers)
        active = table.columns.get("iops", np.ones(len(table.rows))) > 0
        return np.where(active[:, None], np.stack(tiers, axis=1), np.uint8(Tier.NONE))

    def _assign_slots(self, rows: Rows) -> None:
        self._at = self._slots.of(rows)
        missing = len(self._slots) - self._sums.shape[1]
        if missing > 0:
            room = max(missing, self._sums.shape[1] // 2)
            self._pad((0, 0), (0, room))
            self._largest = np.pad(self._largest, ((0, room), (0, 0)), constant_values=np.nan)

    def _open_cell(self) -> None:
        if self._cells == MOST_CELLS:
            self._merge()
        if self._cells == len(self._sums):
            self._pad((0, len(self._sums)), (0, 0))
        self._cells += 1
        self.ends_ns.append(0)

    def _pad(self, cells: tuple[int, int], rows: tuple[int, int]) -> None:
        room = (cells, rows, (0, 0))
        self._sums, self._totals = np.pad(self._sums, room), np.pad(self._totals, room)
        self._tiers = np.pad(self._tiers, room)

    def _merge(self) -> None:
        """Merge cells in pairs, so that half as many hold twice the time."""
        half = self._cells // 2
        for each in (self._sums, self._totals):
            each[:half] = each[0 : 2 * half : 2] + each[1 : 2 * half : 2]
            each[half:] = 0
        self._tiers[:half] = _lower(self._tiers[0 : 2 * half : 2], self._tiers[1 : 2 * half : 2])
        self._tiers[half:] = 0
        self.ends_ns = self.ends_ns[1 : 2 * half : 2]
        self._cells, self.per_cell = half, 2 * self.per_cell


def _lower(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the lower tier of two, where 0 says nothing."""
    either = np.maximum(one, other)
    return np.where((one > 0) & (other > 0), np.minimum(one, other), either).astype(np.uint8)


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
        if len(self._cells) == _MOST_HISTOGRAMS:
            self._cells = [merged(self._cells[index : index + 2]) for index in range(0, _MOST_HISTOGRAMS, 2)]
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
