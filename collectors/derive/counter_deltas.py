"""Differences of raw columns between two samples; NaN where they are unknown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import repeat
from math import isnan

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
    source_of: Callable[[Column], str] = one_source,
    wrap: float = 0.0,
) -> Deltas:
    """Reduce each column to its change over one interval.

    Counters give their increase, modulo 2^32 where they wrap; gauges their current value; interval amounts and peaks
    their value where the row has a previous sample. NaN where a value is missing. A 64-bit counter that decreased means
    that its source was reset: everything of that source but the gauges is NaN in that row.

    Args:
        columns: columns of both arrays.
        before: previous values, shape (rows, len(columns)).
        now: current values, same shape.
        source_of: source of a column; columns of one source are reset together.
        wrap: result of `wrap_limit`.
    """
    kinds, sources = _kinds_and_sources(tuple(columns), source_of)
    deltas = counter_deltas(np.ascontiguousarray(before), np.ascontiguousarray(now), kinds, sources, int(wrap))
    return Deltas(len(now), dict(zip((column.id for column in columns), deltas, strict=True)))


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
