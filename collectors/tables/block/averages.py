"""Averages of disks, paths and HBA ports over a whole report, from summed raw deltas, never a mean of means."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from collectors.derive.disk_interval import DiskInterval
from collectors.derive.inflight_samples import NO_GROUP_SAMPLES, added_group_samples
from collectors.model import FrameTable, Rows, Step, Topology
from collectors.subject import interval_s
from collectors.tables.block.derive.block_interval import block_interval
from collectors.tables.block.derive.block_tables import block_tables
from collectors.tables.block.derive.disk_figures import with_hotness
from collectors.tables.block.derive.exact import with_exact
from collectors.tables.block.schema import DISK
from collectors.tables.block.traced_sum import TracedSum

_SPEAKS = 0.9
"""Share of a report that exact counters must cover to be used for it, and in which a disk must have been present."""


class BlockAverages:
    """Adds up the intervals of a report, each disk over the time in which it was measured.

    Adding deltas instead of subtracting the first sample from the last handles counters that wrap or are reset, and
    disks that are added or removed.
    """

    def __init__(self) -> None:
        self._slots: dict[str, int] = {}
        self._names: list[str] = []
        self._sums: dict[str, NDArray[np.float64]] = {}
        self._peaks = np.zeros(0)
        self._rows: Rows | None = None
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
        self._assign_slots(table.rows)
        self._sum("elapsed_s")[self._at] += elapsed_s
        self._sampled_groups = added_group_samples(self._sampled_groups, reduced.sampled_groups)
        if reduced.traced is not None:
            self._traced.add(reduced.traced)
        for interval in reduced.moved:
            self._add(interval, elapsed_s)

    def tables(self) -> dict[str, FrameTable]:
        """Figures of all disks, paths and ports that were ever present, over the whole report.

        Peaks are the maximum of all intervals. Paths belong to LUNs as in the last sample.
        """
        rows = Rows(tuple(self._slots), tuple(self._names))
        sums = {quantity: self._sum(quantity) for quantity in self._sums}
        elapsed_s = float(sums["elapsed_s"].max(initial=0.0)) if "elapsed_s" in sums else np.nan
        if "reads" not in sums:
            return with_hotness(block_tables(rows, [], self._topology, elapsed_s, np.zeros(len(rows), np.bool_)))
        moved = DiskInterval(slice(len(rows)), sums, self._enlarged(self._peaks, np.nan))
        silent = sums["reads"] + sums["writes"] == 0
        tables = block_tables(rows, [moved], self._topology, elapsed_s, silent, sampled_groups=self._sampled_groups)
        exact = self._traced.total() if self._traced.elapsed_s >= _SPEAKS * elapsed_s else None
        whole = sums["elapsed_s"] >= _SPEAKS * elapsed_s
        return with_hotness(with_exact(tables, exact, rows, self._topology.graph, silent, whole=whole))

    def _assign_slots(self, rows: Rows) -> None:
        """Assign slots to the rows, new ones for new disks."""
        if rows is self._rows:
            return
        for key, name in zip(rows.keys, rows.names, strict=True):
            if key not in self._slots:
                self._slots[key] = len(self._slots)
                self._names.append(name)
        self._rows = rows
        self._at = np.fromiter((self._slots[key] for key in rows.keys), np.intp, len(rows))

    def _add(self, interval: DiskInterval, elapsed_s: float) -> None:
        """Add the sums of active disks; the time of a disk without figures in this interval is not counted."""
        slots = self._at[interval.at]
        measured = ~np.isnan(interval.sums["reads"])
        for quantity, values in interval.sums.items():
            if quantity != "elapsed_s":
                self._sum(quantity)[slots] += np.where(measured, values, 0.0)
        self._sum("elapsed_s")[slots[~measured]] -= elapsed_s
        self._peaks = self._enlarged(self._peaks, np.nan)
        self._peaks[slots] = np.fmax(self._peaks[slots], interval.peaks)

    def _sum(self, quantity: str) -> NDArray[np.float64]:
        """Sum of a quantity so far, one value per slot."""
        total = self._sums[quantity] = self._enlarged(self._sums.get(quantity, np.zeros(0)), 0.0)
        return total

    def _enlarged(self, values: NDArray[np.float64], fill: float) -> NDArray[np.float64]:
        missing = len(self._slots) - len(values)
        return np.concatenate((values, np.full(missing, fill))) if missing else values
