"""How far raw columns went from one sample to the next; NaN wherever that cannot be known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from collectors.model import MISSING, Column, Kind, Rows, Table

Values = NDArray[np.float64]
Raw = NDArray[np.uint64]

_MODULUS32 = np.uint64(0xFFFF_FFFF)
_PLAUSIBLE32 = float(1 << 31)
"""Growth of a 32-bit counter beyond half its range is a step back, not a wrap."""

_WRAP_PER_SECOND = float(1 << 27)
"""Most that a 32-bit counter of I/Os or sectors can grow in a second: 64 GiB/s in sectors of 512 bytes."""


class Grown(dict[str, Values]):
    """Growth of columns by id over `rows` rows; NaN for a column that the table's version does not have."""

    def __init__(self, rows: int, grown: Mapping[str, Values]) -> None:
        super().__init__(grown)
        self.rows = rows

    def __missing__(self, column_id: str) -> Values:
        return np.full(self.rows, np.nan)


def wrap_limit(long_bits: int, elapsed_s: float) -> float:
    """Largest growth over which a fallen COUNTER counts as wrapped at 2^32; 0 where the kernel's long has 64 bits."""
    return 0.0 if long_bits != 32 else min(_WRAP_PER_SECOND * elapsed_s, _PLAUSIBLE32)


def positions(rows: Rows, keys: Sequence[str]) -> NDArray[np.intp]:
    """Where each key stands in `rows`, -1 where it does not; shape (len(keys),)."""
    index = dict(zip(rows.keys, range(len(rows)), strict=True))
    return np.fromiter((index.get(key, -1) for key in keys), np.intp, len(keys))


def aligned(previous: Table | None, current: Table) -> Raw:
    """Values of `previous` in the row order of `current`, all MISSING for rows that are new.

    Returns:
        uint64 of the shape of `current.values`; the array of `previous` itself while nobody came or went.
    """
    if previous is None or previous.schema.columns != current.schema.columns:
        return np.full_like(current.values, MISSING)
    if previous.rows is current.rows:
        return previous.values
    at = positions(previous.rows, current.rows.keys)
    values = np.full_like(current.values, MISSING)
    values[at >= 0] = previous.values[at[at >= 0]]
    return values


def growth(
    columns: Sequence[Column], before: Iterable[Raw], now: Iterable[Raw], wrap: float = 0.0
) -> dict[str, Values]:
    """Reduce each column to what it did over one interval, by column id.

    Counters give their growth, modulo 2^32 where they wrap; gauges their value now; interval amounts and peaks their
    value where the row has a previous sample. NaN where a value is missing. When a 64-bit counter fell, the source
    of these columns began anew: everything but the gauges of that row is NaN.

    Args:
        columns: what the values are, all from one source.
        before: previous values, one array per column over the rows.
        now: current values likewise.
        wrap: as `wrap_limit` says.
    """
    grown: dict[str, Values] = {}
    resets: list[NDArray[np.bool_]] = []
    for column, old, new in zip(columns, before, now, strict=True):
        if column.kind is Kind.COUNTER:
            grown[column.id], reset = _counter(old, new, wrap)
            resets.append(reset)
        else:
            grown[column.id] = _instant(column.kind, old, new)
    if any(reset.any() for reset in resets):
        _forget(columns, grown, np.logical_or.reduce(resets))
    return grown


def _counter(old: Raw, new: Raw, wrap: float) -> tuple[Values, NDArray[np.bool_]]:
    """Growth of a counter, and the rows where it was reset."""
    missing = (old == MISSING) | (new == MISSING)
    grown: Values = (new - old).astype(np.float64)
    grown[missing] = np.nan
    fell = (new < old) & ~missing
    if wrap and fell.any():
        wrapped = ((new - old) & _MODULUS32).astype(np.float64)
        believed = fell & (old <= _MODULUS32) & (wrapped <= wrap)
        grown[believed] = wrapped[believed]
        fell &= ~believed
    return grown, fell


def _instant(kind: Kind, old: Raw, new: Raw) -> Values:
    """Growth modulo 2^32, or the value now."""
    if kind is Kind.COUNTER32:
        grown: Values = ((new - old) & _MODULUS32).astype(np.float64)
        grown[(old == MISSING) | (new == MISSING) | (grown > _PLAUSIBLE32)] = np.nan
        return grown
    value: Values = new.astype(np.float64)
    value[(new == MISSING) if kind is Kind.GAUGE else (new == MISSING) | (old == MISSING)] = np.nan
    return value


def _forget(columns: Sequence[Column], grown: Mapping[str, Values], reset: NDArray[np.bool_]) -> None:
    for column in columns:
        if column.kind is not Kind.GAUGE:
            grown[column.id][reset] = np.nan


def instant(columns: Sequence[Column], values: Raw, column_id: str) -> Values:
    """One column of a raw table as it stood, NaN where missing or where the table's version does not have it."""
    for position, column in enumerate(columns):
        if column.id == column_id:
            raw = values[:, position]
            return np.where(raw == MISSING, np.nan, raw.astype(np.float64))
    return np.full(len(values), np.nan)


def present(count: Values, amount: Values) -> Values:
    """Take the amount of a kind of I/O, 0 where the kernel does not count that kind apart."""
    return np.where(np.isnan(count), 0.0, amount)


def ratio(part: Values, whole: Values | float) -> Values:
    """`part / whole`, NaN where `whole` is 0 or either is missing."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        quotient: Values = np.divide(part, whole)
    quotient[~np.isfinite(quotient)] = np.nan
    return quotient


def share_pct(part_s: Values, whole_s: Values | float) -> Values:
    """Express a time as a percentage of an interval, at most 100.

    NaN where it exceeds the interval by more than 20 % and 10 ms (a tick of the slowest kernels): such a counter has
    counted something else, as io_ticks of 6.1 and 6.12 were seen to add whole idle periods.
    """
    believed = part_s <= np.multiply(whole_s, 1.2) + 0.01
    return np.where(believed, np.minimum(100.0, 100.0 * ratio(part_s, whole_s)), np.nan)
