"""Differences of raw columns between two samples; NaN where they are unknown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import repeat
from math import inf, isnan

import numpy as np
from numpy.typing import NDArray

from collectors.model import MISSING, Column, Kind, Rows, Table
from engine._native import counter_deltas

Values = NDArray[np.float64]
Raw = NDArray[np.uint64]
Kinds = NDArray[np.uint8]
Sources = NDArray[np.uint16]

_KINDS = {Kind.COUNTER: 0, Kind.COUNTER32: 1, Kind.GAUGE: 2, Kind.INTERVAL: 3, Kind.PEAK: 3}
"""Number of each kind in `engine._native.counter_deltas`."""

_WRAP_PER_SECOND = float(1 << 27)
"""Largest plausible increase per second of a 32-bit counter of I/Os or sectors: 64 GiB/s in sectors of 512 bytes."""


_MOST_PER_SECOND = {
    "_ns": 2.0**58,
    "_us": 2.0**50,
    "_ms": 2.0**40,
    "_bytes": 2.0**46,
    "_sectors": 2.0**37,
    "_sum": 2.0**46,
    "_squares": 2.0**56,
}
"""Largest increase per second that is physically possible, by unit: 64 TiB/s; the times of a million I/Os that end
after a stall of minutes, as a time is added when an I/O ends; sums over a million I/Os at many instants."""
_MOST_EVENTS_PER_SECOND = 2.0**33
"""The same of I/Os, errors and all else that is counted."""
_SHORTEST_S = 1.0
"""Counters may be updated less often than they are read."""


class Deltas(dict[str, Values]):
    """Deltas of columns by id over `rows` rows; NaN for a column that the table's version does not have."""

    def __init__(self, rows: int, deltas: Mapping[str, Values]) -> None:
        super().__init__(deltas)
        self.rows = rows

    def __missing__(self, column_id: str) -> Values:
        return np.full(self.rows, np.nan)


def wrap_limit(long_bits: int, elapsed_s: float) -> float:
    """Largest delta for which a decreased COUNTER counts as wrapped at 2^32.

    At most half the range; 0 if the kernel's long has 64 bits, or there is no interval.
    """
    return 0.0 if long_bits != 32 or isnan(elapsed_s) else min(_WRAP_PER_SECOND * elapsed_s, float(1 << 31))


def positions(rows: Rows, keys: Sequence[str]) -> NDArray[np.intp]:
    """Position of each key in `rows`, -1 if it is missing; shape (len(keys),)."""
    return np.fromiter(map(rows.positions.get, keys, repeat(-1)), np.intp, len(keys))


def aligned(previous: Table | None, current: Table) -> Raw:
    """Values of `previous` in the row order of `current`, all MISSING for rows that are new.

    Returns:
        uint64 of the shape of `current.values`; the array of `previous` itself if the rows are the same.
    """
    if previous is None or previous.schema.columns != current.schema.columns:
        return np.full_like(current.values, MISSING)
    if previous.rows is current.rows:
        return previous.values
    at = positions(previous.rows, current.rows.keys)
    values = np.full_like(current.values, MISSING)
    values[at >= 0] = previous.values[at[at >= 0]]
    return values


def one_source(_: Column) -> str:
    """Treat all columns of a table as one source: they are reset together."""
    return ""


def column_deltas(
    columns: Sequence[Column],
    before: Raw,
    now: Raw,
    *,
    elapsed_s: float,
    source_of: Callable[[Column], str] = one_source,
    wrap: float = 0.0,
) -> Deltas:
    """Reduce each column to its change over one interval.

    Counters give their increase, modulo 2^32 where they wrap; gauges their current value; interval amounts and peaks
    their value where the row has a previous sample. NaN where a value is missing. A 64-bit counter that decreased, or
    increased by more than is physically possible in the interval, means that its source was reset or counts wrong:
    everything of that source but the gauges is NaN in that row.

    Args:
        columns: columns of both arrays.
        before: previous values, shape (rows, len(columns)).
        now: current values, same shape.
        elapsed_s: length of the interval; NaN if there is none.
        source_of: source of a column; columns of one source are reset together.
        wrap: result of `wrap_limit`.
    """
    kinds, sources = _kinds_and_sources(tuple(columns), source_of)
    deltas = counter_deltas(np.ascontiguousarray(before), np.ascontiguousarray(now), kinds, sources, int(wrap))
    _leave_out_impossible(deltas, _most_per_second(tuple(columns)), max(elapsed_s, _SHORTEST_S), kinds, sources)
    return Deltas(len(now), dict(zip((column.id for column in columns), deltas, strict=True)))


def _leave_out_impossible(
    deltas: Values, most_per_second: Values, span_s: float, kinds: Kinds, sources: Sources
) -> None:
    """Make a source NaN in the rows in which one of its counters grew by more than is possible; a row is a column."""
    impossible = deltas > (most_per_second * span_s)[:, None]
    if not impossible.any():
        return
    for at in np.flatnonzero(impossible.any(axis=1)):
        of_source = (sources == sources[at]) & (kinds != _KINDS[Kind.GAUGE])
        deltas[np.ix_(of_source, impossible[at])] = np.nan


@lru_cache
def _most_per_second(columns: tuple[Column, ...]) -> Values:
    """Return the limit of each column, infinite for gauges."""
    units = ([most for unit, most in _MOST_PER_SECOND.items() if column.id.endswith(unit)] for column in columns)
    limits = [(found or [_MOST_EVENTS_PER_SECOND])[0] for found in units]
    return np.where([column.kind is Kind.GAUGE for column in columns], inf, limits)


@lru_cache
def _kinds_and_sources(columns: tuple[Column, ...], source_of: Callable[[Column], str]) -> tuple[Kinds, Sources]:
    """Return the kinds of the columns and their sources as numbers."""
    names = [source_of(column) for column in columns]
    sources = [names.index(name) for name in names]
    return np.array([_KINDS[column.kind] for column in columns], np.uint8), np.array(sources, np.uint16)


def instant(columns: Sequence[Column], values: Raw, column_id: str) -> Values:
    """Return the current values of one raw column, NaN where missing or where the table's version lacks it."""
    for position, column in enumerate(columns):
        if column.id == column_id:
            raw = values[:, position]
            return np.where(raw == MISSING, np.nan, raw.astype(np.float64))
    return np.full(len(values), np.nan)


def present(count: Values, amount: Values) -> Values:
    """Return the amount of a kind of I/O, 0 where the kernel does not count that kind separately."""
    return np.where(np.isnan(count), 0.0, amount)


def ratio(part: Values, whole: Values | float) -> Values:
    """`part / whole`, NaN where `whole` is 0 or either is missing."""
    quotient: Values = part / np.where(np.greater(whole, 0.0), whole, np.nan)
    return quotient


def share_pct(part_s: Values, whole_s: Values | float) -> Values:
    """Express a time as a percentage of an interval, at most 100.

    NaN where it exceeds the interval by more than 20 % and 10 ms (a tick of the slowest kernels): such a counter is
    wrong, as io_ticks of 6.1 and 6.12, which was observed to add whole idle periods.
    """
    believed = part_s <= np.multiply(whole_s, 1.2) + 0.01
    return np.where(believed, np.minimum(100.0, 100.0 * ratio(part_s, whole_s)), np.nan)
