"""Counts of the block tracepoints per device over an interval, as additive sums."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.derive.counter_deltas import Raw, Values, aligned, column_deltas
from collectors.derive.percentiles import rows_of_cells
from collectors.model import MISSING, Histograms, HistogramScale, Rows, Sample, Table
from collectors.tables.block.schema import (
    LOST_SHARE,
    NO_TAG_WAITS,
    TAG_WAITS_TIMED,
    TRACE,
    TRACE_GROUP,
    TRACE_SERIES,
    TRACER,
)

SUMMED = (
    "reads",
    "writes",
    "others",
    "read_bytes",
    "write_bytes",
    "queue_read_ns",
    "queue_write_ns",
    "service_read_ns",
    "service_write_ns",
    "tag_wait_ns",
    "busy_ns",
    "lost_in_driver_ns",
    "unstamped",
    "uncounted",
    "splits",
)
"""Quantities that are additive over devices and intervals; busy time is additive over intervals only."""

LARGEST = ("in_driver_peak", "in_driver_peak_most", "queue_max_ns", "service_max_ns", "latency_max_ns")
"""Quantities merged by taking the maximum."""


_BUSY_IS_LEAST = "in_driver_peak_most"
"""Column without which `busy_ns` contains the time of lost I/Os, which is left out here: it is what was seen."""

_MOVES = frozenset({"reads", "writes", "others", "busy_ns"})
"""Columns of which at least one changes with any activity of a device; an ongoing busy interval grows, too."""


class TracedCells(Struct, frozen=True, eq=False):
    """Histogram cells of traced devices: `count[i]` I/Os of row `row[i]` and series `series[i]` are in `bucket[i]`."""

    scale: HistogramScale
    row: NDArray[np.intp]
    series: NDArray[np.uint8]
    """Index in TRACE_SERIES."""
    bucket: NDArray[np.uint16]
    count: NDArray[np.uint64]


class Traced(Struct, frozen=True, eq=False):
    """Deltas of TRACE, TRACE_GROUP and the histograms over one interval, or over several merged.

    `values` has a float64 array of shape (len(at),) for every id of SUMMED and LARGEST, NaN where unknown; rows that
    are not in `at` were idle. Busy time is the least it can have been, and at most longer by `lost_in_driver_ns`. A
    group's time is the time in which any of its devices was busy, NaN for a new group.
    `elapsed_s` is the time between the two readings of the counters.
    """

    rows: Rows
    at: NDArray[np.intp]
    values: Mapping[str, Values]
    cells: TracedCells | None
    group_rows: Rows
    group_busy_ns: Values
    elapsed_s: float
    tag_wait: bool
    """Whether waits for tags were timed during the whole interval."""
    is_lossy: bool = False
    """Whether so many I/Os were lost that only busy time and maxima are known, as lower bounds."""


_NO_LOSSES = frozenset({"started_ns", "clock_ns", "tag_wait_on", "program_time_ns", "program_runs"})


def losses_of(sample: Sample) -> dict[str, int]:
    """Return the counts of TRACER: I/Os lost or rescued since the tracepoints were attached."""
    table = sample.tables.get(TRACER.name)
    if table is None or not len(table.rows):
        return {}
    counts = zip(table.schema.columns, table.values[0].tolist(), strict=True)
    return {column.id: count for column, count in counts if column.id not in _NO_LOSSES and count != MISSING}


@lru_cache(maxsize=1)
def traced(previous: Sample | None, current: Sample) -> Traced | None:
    """Compute the traced sums between two samples; the last result is kept, as several tables are derived from it.

    None if the tracepoints were not attached for the whole interval. With too many lost I/Os only busy time and maxima
    are known, as lower bounds.
    """
    if previous is None:
        return None
    before, now = previous.tables.get(TRACE.name), current.tables.get(TRACE.name)
    tracer_before, tracer_now = previous.tables.get(TRACER.name), current.tables.get(TRACER.name)
    clock = _clock(tracer_before, tracer_now)
    if before is None or now is None or clock is None:
        return None
    elapsed_s, tag_wait = clock
    at, values = _row_deltas(before, now, elapsed_s)
    ios = sum(float(np.nansum(values[name])) for name in ("reads", "writes", "others"))
    cells, is_lossy = _cells(now.rows, current.histograms.get(TRACE.name)), False
    if _lost(tracer_before, tracer_now, elapsed_s) > LOST_SHARE * ios:
        values, cells, is_lossy = bounds_only(values, elapsed_s), None, True
    old_groups, new_groups = (sample.tables.get(TRACE_GROUP.name) for sample in (previous, current))
    group_rows, group_busy_ns = _groups(old_groups, new_groups, elapsed_s)
    return Traced(now.rows, at, values, cells, group_rows, group_busy_ns, elapsed_s, tag_wait, is_lossy)


def traced_wholly(previous: Sample | None, current: Sample) -> Traced | None:
    """Compute the traced sums between two samples; None also if too many I/Os were lost."""
    found = traced(previous, current)
    return None if found is None or found.is_lossy else found


def _clock(before: Table | None, now: Table | None) -> tuple[float, bool] | None:
    """Seconds between two readings of one tracer, and whether waits were timed; None after a restart."""
    if before is None or now is None or len(before.rows) != 1 or len(now.rows) != 1:
        return None
    old, new = (
        {column.id: int(table.values[0, i]) for i, column in enumerate(table.schema.columns)} for table in (before, now)
    )
    clocks = [record.get(name, int(MISSING)) for record in (old, new) for name in ("started_ns", "clock_ns")]
    if int(MISSING) in clocks or clocks[0] != clocks[2] or clocks[3] <= clocks[1]:
        return None
    return (clocks[3] - clocks[1]) / 1e9, _knows_tag_waits(old, new)


def _knows_tag_waits(old: Mapping[str, int], new: Mapping[str, int]) -> bool:
    """Whether the waits for tags of an interval are known: timed all the time, or none began."""
    before, now = (record.get("tag_wait_on", int(MISSING)) for record in (old, new))
    if int(MISSING) in {before, now}:
        return False
    return bool(before & now & TAG_WAITS_TIMED or now & NO_TAG_WAITS)


def _lost(before: Table | None, now: Table | None, elapsed_s: float) -> float:
    """Count the I/Os not traced from issue to completion; one that found the table full counts once."""
    if before is None or now is None:
        return 0.0
    deltas = column_deltas(now.schema.columns, aligned(before, now), now.values, elapsed_s=elapsed_s)
    no_start = np.fmax(deltas["table_full"], deltas["unseen"])
    return float(np.nansum([no_start, deltas["stale"], deltas["healed"]]))


def _row_deltas(before: Table, now: Table, elapsed_s: float) -> tuple[NDArray[np.intp], dict[str, Values]]:
    """Rows with activity, and their deltas; a new row has counted from 0."""
    columns, old = now.schema.columns, _from_zero(before, now)
    moved = np.zeros(len(old), np.bool_)
    for position, column in enumerate(columns):
        if column.id in _MOVES:
            moved |= now.values[:, position] != old[:, position]
    at = np.flatnonzero(moved)
    deltas = column_deltas(columns, old[at], now.values[at], elapsed_s=elapsed_s)
    unknown = np.full(len(at), np.nan)
    values = {name: deltas.get(name, unknown) for name in (*SUMMED, *LARGEST)}
    if "lost_in_driver_ns" not in deltas:
        values["lost_in_driver_ns"] = np.zeros(len(at))
    if all(column.id != _BUSY_IS_LEAST for column in columns):
        values["busy_ns"] = np.maximum(values["busy_ns"] - values["lost_in_driver_ns"], 0.0)
    return at, values


def bounds_only(values: Mapping[str, Values], elapsed_s: float) -> dict[str, Values]:
    """Keep what bounds the true values from below: an I/O may have been lost on any device, at any time."""
    nothing = np.full(len(values["busy_ns"]), np.nan)
    left_ns = np.fmax(1e9 * elapsed_s - np.nan_to_num(values["busy_ns"]), values["lost_in_driver_ns"])
    bounds = {name: values[name] for name in ("busy_ns", "unstamped", *LARGEST)}
    return {**dict.fromkeys(values, nothing), **bounds, "lost_in_driver_ns": left_ns}


def _from_zero(before: Table, now: Table) -> Raw:
    values = aligned(before, now)
    if before.rows is now.rows or before.schema.columns != now.schema.columns:
        return values
    new = [position for key, position in now.rows.positions.items() if key not in before.rows.positions]
    values[new] = 0
    return values


def _groups(before: Table | None, now: Table | None, elapsed_s: float) -> tuple[Rows, Values]:
    if now is None:
        return Rows((), ()), np.zeros(0)
    deltas = column_deltas(now.schema.columns, aligned(before, now), now.values, elapsed_s=elapsed_s)
    return now.rows, deltas["busy_ns"]


def _cells(rows: Rows, histograms: Histograms | None) -> TracedCells | None:
    if histograms is None or not set(histograms.series) <= set(TRACE_SERIES):
        return None
    row = rows_of_cells(rows, histograms)
    kept = (row >= 0) & (histograms.series_index < len(histograms.series))
    series = np.array([TRACE_SERIES.index(name) for name in histograms.series], np.uint8)
    of_cell = series[histograms.series_index[kept]] if len(series) else np.zeros(0, np.uint8)
    return TracedCells(histograms.scale, row[kept], of_cell, histograms.bucket[kept], histograms.count[kept])
