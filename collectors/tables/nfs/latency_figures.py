"""Percentiles and largest latencies of NFS calls, for rows of mounts, operations and transports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.derive.counter_deltas import Values
from collectors.derive.percentiles import AddedHistograms, RowCells, percentiles_ns, rows_of_cells
from collectors.model import MISSING, FrameTable, Histograms, Rows, Step, Table
from collectors.subject import Averages, interval_s
from collectors.tables.nfs.schema import (
    LATENCY_PARTS,
    LATENCY_PEAKS,
    LATENCY_SERIES,
    NFS_LATENCY,
    UNKNOWN,
    latency_parts,
)

PERCENTS = (50.0, 99.0)

Belongs = Callable[[str], tuple[str, ...]]
"""Keys of the rows that a row of NFS_LATENCY counts in, by its key."""


def rows_of_operation(key: str) -> tuple[str, ...]:
    """Return the rows of the operation and of its mount."""
    mount, operation, _ = latency_parts(key)
    return f"{mount} {operation}", f"{mount} all"


def rows_of_transport(key: str) -> tuple[str, ...]:
    """Return the row of the transport; none where it is not known."""
    mount, _, transport = latency_parts(key)
    return () if transport == UNKNOWN else (f"{mount} {transport}",)


class TimedInterval(Struct, frozen=True, eq=False):
    """Calls timed in one interval, or in several: counts and largest latencies by row, and histograms."""

    rows: Rows
    calls: Values
    peaks_ns: Values
    """Shape (rows, parts)."""
    histograms: Histograms | None
    elapsed_s: float


def timed_interval(table: Table | None, histograms: Histograms | None, elapsed_s: float) -> TimedInterval | None:
    """Take the raw table of an interval; None where nothing was timed."""
    if table is None:
        return None
    calls = _known(table.column("calls"))
    peaks = np.stack([_known(table.column(name)) for name in LATENCY_PEAKS], axis=1)
    return TimedInterval(table.rows, calls, peaks, histograms, elapsed_s)


def _known(raw: NDArray[np.uint64]) -> Values:
    found: Values = np.where(raw == MISSING, 0, raw).astype(np.float64)
    return found


def latency_figures(rows: Rows, timed: TimedInterval | None, belongs: Belongs) -> dict[str, Values]:
    """Return the fields of latency of these rows; NaN where nothing was timed, or too few calls for a percentile."""
    names = [f"{part}_{which}_ms" for part in LATENCY_PARTS for which in ("p50", "p99", "max")]
    figures = {name: np.full(len(rows), np.nan) for name in ("timed_per_s", *names)}
    if timed is None:
        return figures
    source, target = _pairs(timed.rows, rows, belongs)
    figures["timed_per_s"] = np.bincount(target, timed.calls[source], len(rows)) / timed.elapsed_s
    peaks_ns = np.zeros((len(rows), len(LATENCY_PARTS)))
    np.maximum.at(peaks_ns, target, timed.peaks_ns[source])
    for at, part in enumerate(LATENCY_PARTS):
        largest_ms = np.where(peaks_ns[:, at] > 0, peaks_ns[:, at] / 1e6, np.nan)
        found = _percentiles_ms(part, rows, timed, source, target)
        # The middle of a bucket may lie above the largest latency in it.
        p50_ms, p99_ms = np.where(found > largest_ms, largest_ms, found)
        figures |= {f"{part}_p50_ms": p50_ms, f"{part}_p99_ms": p99_ms, f"{part}_max_ms": largest_ms}
    return figures


def _percentiles_ms(
    part: str, rows: Rows, timed: TimedInterval, source: NDArray[np.intp], target: NDArray[np.intp]
) -> Values:
    """Percentiles of one part, shape (percents, rows)."""
    histograms = timed.histograms
    if histograms is None or not len(histograms.count):
        return np.full((len(PERCENTS), len(rows)), np.nan)
    of_cell = rows_of_cells(timed.rows, histograms)
    wanted = np.array([_is_of(name, part) for name in histograms.series] + [False])
    kept = wanted[np.minimum(histograms.series_index, len(histograms.series))] & (of_cell >= 0)
    cell, row = _repeated(np.flatnonzero(kept), of_cell, source, target)
    cells = RowCells(histograms.scale, row.astype(np.uint32), histograms.bucket[cell], histograms.count[cell])
    found: Values = percentiles_ns(cells, len(rows), PERCENTS) / 1e6
    return found


def _is_of(series: str, part: str) -> bool:
    """Whether a series is of a part; those without one are of the execute time."""
    its_part = series.rpartition("_")[0] or LATENCY_PARTS[-1]
    return series in LATENCY_SERIES and its_part == part


def _repeated(
    cells: NDArray[np.intp], of_cell: NDArray[np.intp], source: NDArray[np.intp], target: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Each cell once for each row that its row counts in, with that row; `source` is ascending."""
    first = np.searchsorted(source, of_cell[cells], "left")
    times = np.searchsorted(source, of_cell[cells], "right") - first
    cell = np.repeat(np.arange(len(cells)), times)
    within = np.arange(len(cell)) - np.repeat(np.cumsum(times) - times, times)
    return cells[cell], target[np.repeat(first, times) + within]


@lru_cache(maxsize=8)
def _pairs(timed: Rows, rows: Rows, belongs: Belongs) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows of NFS_LATENCY, ascending, and the rows in which they count."""
    pairs = [
        (source, rows.positions[key])
        for source, timed_key in enumerate(timed.keys)
        for key in belongs(timed_key)
        if key in rows.positions
    ]
    both = np.array(pairs, np.intp).reshape(-1, 2)
    return both[:, 0], both[:, 1]


class TimedAverages:
    """Averages of a report with the latencies of all its intervals; other averages make the rest."""

    def __init__(self, others: Averages, table: str, belongs: Belongs) -> None:
        self._others = others
        self._table = table
        self._belongs = belongs
        self._calls: dict[str, float] = {}
        self._peaks_ns: dict[str, NDArray[np.float64]] = {}
        self._histograms = AddedHistograms()
        self._elapsed_s = 0.0

    def add(self, step: Step) -> None:
        """Add the interval of a step; one without a previous sample has none."""
        self._others.add(step)
        name, elapsed_s = NFS_LATENCY.name, interval_s(step.previous, step.current)
        timed = timed_interval(step.current.tables.get(name), step.current.histograms.get(name), elapsed_s)
        if timed is None or np.isnan(elapsed_s):
            return
        self._elapsed_s += elapsed_s
        for key, calls, peaks in zip(timed.rows.keys, timed.calls.tolist(), timed.peaks_ns, strict=True):
            self._calls[key] = self._calls.get(key, 0.0) + calls
            self._peaks_ns[key] = np.maximum(self._peaks_ns.get(key, 0.0), peaks)
        self._histograms.add(timed.histograms)

    def tables(self) -> Mapping[str, FrameTable]:
        """Figures of all rows ever present."""
        tables = dict(self._others.tables())
        table = tables.get(self._table)
        if table is not None:
            figures = latency_figures(table.rows, self._timed(), self._belongs)
            tables[self._table] = FrameTable(table.rows, {**table.columns, **figures})
        return tables

    def _timed(self) -> TimedInterval | None:
        if not self._elapsed_s:
            return None
        rows = Rows(tuple(self._calls), tuple(self._calls))
        peaks_ns = np.array(list(self._peaks_ns.values())).reshape(-1, len(LATENCY_PARTS))
        return TimedInterval(
            rows, np.array(list(self._calls.values())), peaks_ns, self._histograms.total(), self._elapsed_s
        )
