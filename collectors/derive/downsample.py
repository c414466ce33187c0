"""Merging of short intervals into longer ones, keeping every peak."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from collectors.derive.percentiles import merged
from collectors.model import MISSING, Column, Histograms, Kind, Rows, Sample, Step, Table
from collectors.sampling.schedule import SECOND_NS
from engine.replacing import replace

TOLERANCE = 0.98
"""A sample read slightly early still ends its interval."""


def downsample(steps: Iterable[Step], interval_s: float) -> Iterator[Step]:
    """Yield steps at least `interval_s` apart that include the samples in between.

    Counters are cumulative and need no merging; peaks, interval amounts, histograms and events of skipped samples are
    merged into the next one yielded.
    """
    least_ns = round(interval_s * SECOND_NS * TOLERANCE)
    start: Sample | None = None
    carried: Sample | None = None
    for step in steps:
        if step.previous is None or start is None:
            start, carried = step.current, None
            yield Step(None, step.current)
            continue
        carried = step.current if carried is None else _together(carried, step.current)
        if step.current.monotonic_ns - start.monotonic_ns >= least_ns:
            yield Step(start, carried)
            start, carried = step.current, None


def _together(earlier: Sample, later: Sample) -> Sample:
    """Return the later sample with the peaks, amounts, histograms and events of the earlier one merged in."""
    tables = {name: _table(earlier.tables.get(name), table) for name, table in later.tables.items()}
    histograms = {
        name: _cells(earlier.histograms.get(name), cells, keeps_gone=_is_of_intervals(later.tables.get(name)))
        for name, cells in later.histograms.items()
    }
    return replace(
        later,
        tables=tables,
        histograms={**earlier.histograms, **histograms},
        events=(*earlier.events, *later.events),
        cost_ns=earlier.cost_ns + later.cost_ns,
        late_ns=max(earlier.late_ns, later.late_ns),
    )


def _table(earlier: Table | None, later: Table) -> Table:
    if earlier is not None and earlier.schema == later.schema and _is_of_intervals(later):
        later = _with_rows_of(earlier, later)
    moving = [(i, column) for i, column in enumerate(later.schema.columns) if column.kind in {Kind.PEAK, Kind.INTERVAL}]
    if earlier is None or earlier.schema != later.schema or not moving:
        return later
    before, after = _same_rows(earlier, later)
    values = later.values.copy()
    for position, column in moving:
        pair = earlier.values[before, position], values[after, position]
        values[after, position] = _both(column, *pair)
    return Table(later.schema, later.rows, values)


def _both(column: Column, earlier: NDArray[np.uint64], later: NDArray[np.uint64]) -> NDArray[np.uint64]:
    either = np.maximum(earlier, later) if column.kind is Kind.PEAK else earlier + later
    missing = (earlier == MISSING) | (later == MISSING)
    return np.where(missing, np.minimum(earlier, later), either)


def _is_of_intervals(table: Table | None) -> bool:
    """Whether a row is there only in intervals in which it did something: it has amounts and no counters."""
    kinds = set() if table is None else {column.kind for column in table.schema.columns}
    return Kind.INTERVAL in kinds and not kinds & {Kind.COUNTER, Kind.COUNTER32}


def _with_rows_of(earlier: Table, later: Table) -> Table:
    """Add the rows that are in the earlier table only, with no amount."""
    gone = [position for key, position in earlier.rows.positions.items() if key not in later.rows.positions]
    if not gone:
        return later
    rows = Rows(
        (*later.rows.keys, *(earlier.rows.keys[position] for position in gone)),
        (*later.rows.names, *(earlier.rows.names[position] for position in gone)),
    )
    values = earlier.values[gone].copy()
    amounts = [position for position, column in enumerate(later.schema.columns) if column.kind is Kind.INTERVAL]
    values[:, amounts] = 0
    return Table(later.schema, rows, np.concatenate([later.values, values]))


def _same_rows(earlier: Table, later: Table) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    if earlier.rows is later.rows:
        everyone = np.arange(len(later.rows))
        return everyone, everyone
    positions = {key: position for position, key in enumerate(earlier.rows.keys)}
    pairs = [(positions[key], position) for position, key in enumerate(later.rows.keys) if key in positions]
    before, after = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    return before, after


def _cells(earlier: Histograms | None, later: Histograms, *, keeps_gone: bool) -> Histograms:
    """Merge cells; those of rows missing in the later sample are dropped unless `keeps_gone` says otherwise."""
    if earlier is None or (earlier.scale, earlier.series) != (later.scale, later.series):
        return later
    if keeps_gone:
        return merged([earlier, later])
    positions = {key: position for position, key in enumerate(later.rows.keys)}
    moved = np.array([positions.get(key, -1) for key in earlier.rows.keys], dtype=np.int64)
    row = moved[earlier.row] if len(moved) else np.empty(0, np.int64)
    kept = row >= 0
    return replace(
        later,
        row=np.concatenate([row[kept].astype(np.uint32), later.row]),
        series_index=np.concatenate([earlier.series_index[kept], later.series_index]),
        bucket=np.concatenate([earlier.bucket[kept], later.bucket]),
        count=np.concatenate([earlier.count[kept], later.count]),
    )
