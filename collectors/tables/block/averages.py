"""Averages of disks, paths and HBA ports over a whole report, from summed raw deltas, never a mean of means."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from collectors.derive.disk_interval import DiskInterval
from collectors.derive.inflight_samples import NO_GROUP_SAMPLES, added_group_samples
from collectors.derive.known_sums import KnownSums, Slots, enlarged
from collectors.model import FrameTable, HistogramScale, Rows, Step, Topology
from collectors.subject import interval_s
from collectors.tables.block.derive.block_tables import block_interval, block_tables, stalled_ms
from collectors.tables.block.derive.disk_figures import with_others
from collectors.tables.block.derive.exact import with_exact
from collectors.tables.block.derive.traced import LARGEST, Traced, TracedCells, bounds_only
from collectors.tables.block.schema import DISK

_MOST_CELLS = 1 << 20
"""Cells buffered before equal ones are merged."""

_UNKNOWN_ONCE = "in_driver_peak"
"""A maximum that one interval without it makes unknown: a lost I/O may have been the one that made it."""

_Codes = NDArray[np.int64]
_Counts = NDArray[np.uint64]


class TracedSum:
    """Adds up intervals of any devices; the sum has the form that `collectors.tables.block.derive.exact` takes.

    What was unknown in an interval is extrapolated from the other intervals.
    """

    def __init__(self) -> None:
        self._devices = _KeyedSums()
        self._groups = _KeyedSums()
        self._cells: list[tuple[_Codes, _Counts]] = []
        self._held = 0
        self._scale: HistogramScale | None = None
        self._tag_wait = True
        self.elapsed_s = 0.0
        """Total traced time."""
        self._whole_s = 0.0
        """Part of the traced time in which few enough I/Os were lost."""

    def add(self, interval: Traced) -> None:
        """Add one interval."""
        self.elapsed_s += interval.elapsed_s
        self._whole_s += 0.0 if interval.is_lossy else interval.elapsed_s
        self._tag_wait &= interval.tag_wait
        at = self._devices.of(interval.rows)
        self._devices.add(at[interval.at], interval.values, interval.elapsed_s)
        self._groups.add(self._groups.of(interval.group_rows), {"busy_ns": interval.group_busy_ns}, interval.elapsed_s)
        if interval.cells is not None:
            self._add_cells(interval.cells, at)

    def total(self) -> Traced | None:
        """Return the sum as one interval; None if nothing was traced."""
        if not self.elapsed_s:
            return None
        values, is_lossy = self._devices.values(self.elapsed_s), self._whole_s < _SPEAKS * self.elapsed_s
        if is_lossy:
            values = bounds_only(values, self.elapsed_s)
        return Traced(
            rows=self._devices.rows(),
            at=np.arange(len(values["reads"])),
            values=values,
            cells=None if is_lossy else self._total_cells(),
            group_rows=self._groups.rows(),
            group_busy_ns=self._groups.values(self.elapsed_s)["busy_ns"],
            elapsed_s=self.elapsed_s,
            tag_wait=self._tag_wait,
            is_lossy=is_lossy,
        )

    def _add_cells(self, cells: TracedCells, at: NDArray[np.intp]) -> None:
        self._scale = cells.scale
        code = (at[cells.row].astype(np.int64) << 24) | (cells.series.astype(np.int64) << 16) | cells.bucket
        self._cells.append((code, cells.count))
        self._held += len(code)
        if self._held > _MOST_CELLS:
            self._cells = [self._added()]
            self._held = len(self._cells[0][0])

    def _added(self) -> tuple[_Codes, _Counts]:
        code, cell_of = np.unique(np.concatenate([code for code, _ in self._cells]), return_inverse=True)
        count = np.zeros(len(code), np.uint64)
        np.add.at(count, cell_of, np.concatenate([counts for _, counts in self._cells]))
        return code, count

    def _total_cells(self) -> TracedCells | None:
        if self._scale is None:
            return None
        code, count = self._added()
        row, series, bucket = code >> 24, (code >> 16 & 0xFF).astype(np.uint8), (code & 0xFFFF).astype(np.uint16)
        return TracedCells(self._scale, row.astype(np.intp), series, bucket, count)


class _KeyedSums:
    """Sums and maxima by key, one position for each key ever added."""

    def __init__(self) -> None:
        self._slots = Slots()
        self._sums = KnownSums()
        self._largest: dict[str, NDArray[np.float64]] = {}

    def rows(self) -> Rows:
        """Everyone."""
        return self._slots.rows

    def of(self, rows: Rows) -> NDArray[np.intp]:
        """Position of each row, a new one for new keys."""
        return self._slots.of(rows)

    def add(self, at: NDArray[np.intp], values: Mapping[str, NDArray[np.float64]], elapsed_s: float) -> None:
        """Add an interval at some positions."""
        slots = len(self._slots)
        self._sums.add(slots, at, {name: each for name, each in values.items() if name not in LARGEST}, elapsed_s)
        for name in LARGEST:
            if name in values:
                mine = self._largest[name] = enlarged(self._largest.get(name), slots)
                larger = np.maximum if name == _UNKNOWN_ONCE else np.fmax
                mine[at] = larger(mine[at], values[name])

    def values(self, elapsed_s: float) -> dict[str, NDArray[np.float64]]:
        """Return sums over `elapsed_s` and maxima."""
        slots = len(self._slots)
        largest = {name: enlarged(values, slots) for name, values in self._largest.items()}
        return self._sums.totals(np.full(slots, elapsed_s)) | largest


_SPEAKS = 0.9
"""Share of a report that exact counters must cover to be used for it, and in which a disk must have been present."""


class BlockAverages:
    """Adds up the intervals of a report, each disk over the time in which it was measured.

    Adding deltas instead of subtracting the first sample from the last handles counters that wrap or are reset, and
    disks that are added or removed.
    """

    def __init__(self) -> None:
        self._slots = Slots()
        self._sums = KnownSums()
        self._elapsed_s = np.zeros(0)
        self._peaks = np.zeros(0)
        self._stalled_ms = np.zeros(0)
        self._at = np.zeros(0, np.intp)
        self._sampled_groups = NO_GROUP_SAMPLES
        self._traced = TracedSum()
        self._topology = Topology()

    def add(self, step: Step) -> None:
        """Add the interval of a step; one without a previous sample has none."""
        elapsed_s = interval_s(step.previous, step.current)
        table = step.current.tables.get(DISK.name)
        if step.previous is None or table is None or np.isnan(elapsed_s):
            return
        reduced = block_interval(step.previous, step.current)
        self._topology = step.current.topology
        self._at = self._slots.of(table.rows)
        self._elapsed_s = enlarged(self._elapsed_s, len(self._slots))
        self._elapsed_s[self._at] += elapsed_s
        self._stalled_ms = enlarged(self._stalled_ms, len(self._slots), np.nan)
        self._stalled_ms[self._at] = np.fmax(self._stalled_ms[self._at], stalled_ms(table))
        self._sampled_groups = added_group_samples(self._sampled_groups, reduced.sampled_groups)
        if reduced.traced is not None:
            self._traced.add(reduced.traced)
        for interval in reduced.moved:
            self._add(interval, elapsed_s)

    def tables(self) -> dict[str, FrameTable]:
        """Figures of all disks, paths and ports that were ever present, over the whole report.

        Peaks are the maximum of all intervals. Paths belong to LUNs as in the last sample.
        """
        rows = self._slots.rows
        sums = self._sums.totals(self._elapsed_s) | {"elapsed_s": self._elapsed_s}
        elapsed_s = float(self._elapsed_s.max(initial=0.0)) if len(rows) else np.nan
        if "reads" not in sums:
            return with_others(
                block_tables(rows, [], self._topology, elapsed_s, np.zeros(len(rows), np.bool_)), self._topology
            )
        moved = DiskInterval(slice(len(rows)), sums, enlarged(self._peaks, len(rows), np.nan))
        silent = sums["reads"] + sums["writes"] == 0
        tables = block_tables(
            rows,
            [moved],
            self._topology,
            elapsed_s,
            silent,
            sampled_groups=self._sampled_groups,
            stalled_ms=self._stalled_ms,
        )
        exact = self._traced.total() if self._traced.elapsed_s >= _SPEAKS * elapsed_s else None
        whole = sums["elapsed_s"] >= _SPEAKS * elapsed_s
        return with_others(with_exact(tables, exact, rows, self._topology, silent, whole=whole), self._topology)

    def _add(self, interval: DiskInterval, elapsed_s: float) -> None:
        """Add the sums of active disks; the time of a disk without figures in this interval is not counted."""
        slots = self._at[interval.at]
        measured = ~np.isnan(interval.sums["reads"])
        added = {quantity: values[measured] for quantity, values in interval.sums.items() if quantity != "elapsed_s"}
        self._sums.add(len(self._slots), slots[measured], added, elapsed_s)
        self._elapsed_s[slots[~measured]] -= elapsed_s
        self._peaks = enlarged(self._peaks, len(self._slots), np.nan)
        self._peaks[slots] = np.fmax(self._peaks[slots], interval.peaks)
