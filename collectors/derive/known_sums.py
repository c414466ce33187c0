"""Sums over many intervals of rows that come and go, and of quantities that are not known in each of them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from collectors.derive.counter_deltas import Values
from collectors.model import Rows

_ROUNDING = 1e-9
"""Share of the whole time below which a known time is the rounding error of a difference."""


class Slots:
    """Rows ever present in the tables of successive intervals; each keeps its position, whichever are present."""

    def __init__(self) -> None:
        self._positions: dict[str, int] = {}
        self._names: dict[str, str] = {}
        self._latest: Rows | None = None
        self._at = np.zeros(0, np.intp)

    def __len__(self) -> int:
        return len(self._positions)

    def of(self, rows: Rows) -> NDArray[np.intp]:
        """Position of each row of a table, new ones for rows that were never present before."""
        if rows is not self._latest:
            found = [self._positions.setdefault(key, len(self._positions)) for key in rows.keys]
            self._names |= zip(rows.keys, rows.names, strict=True)
            self._latest, self._at = rows, np.array(found, np.intp)
        return self._at

    def at(self, key: str) -> int:
        """Position of a row, -1 for one that was never present."""
        return self._positions.get(key, -1)

    @property
    def rows(self) -> Rows:
        """All of them in the order of their positions."""
        return Rows(tuple(self._positions), tuple(self._names.values()))


class KnownSums:
    """Adds up quantities by slot, each over the intervals in which it is known.

    A single interval without a quantity must not make it unknown for the whole time, nor count as an interval in which
    it was 0: its sum is extrapolated in proportion to time, so that every rate and every share made of the sums is that
    of the intervals in which it was known.
    """

    def __init__(self) -> None:
        self._sums: dict[str, Values] = {}
        self._unknown_s: dict[str, Values] = {}

    def add(self, slots: int, at: NDArray[np.intp], values: Mapping[str, Values], elapsed_s: Values | float) -> None:
        """Add an interval.

        Args:
            slots: number of slots; new ones begin at 0.
            at: slot of each value, no slot twice.
            values: quantities of the interval, NaN where unknown.
            elapsed_s: length of the interval, or that of each row.
        """
        for quantity, amounts in values.items():
            unknown = np.isnan(amounts)
            total = self._sums[quantity] = enlarged(self._sums.get(quantity), slots)
            if unknown.any():
                missed_s = self._unknown_s[quantity] = enlarged(self._unknown_s.get(quantity), slots)
                missed_s[at] += np.where(unknown, elapsed_s, 0.0)
                amounts = np.where(unknown, 0.0, amounts)  # noqa: PLW2901 - the known amounts from here on
            total[at] += amounts

    def totals(self, whole_s: Values) -> dict[str, Values]:
        """Return the sums over the whole time of each slot; NaN for a quantity that was known in none of it.

        Args:
            whole_s: time that was added to each slot.
        """
        return {quantity: total * self._stretch(quantity, whole_s) for quantity, total in self._enlarged(len(whole_s))}

    def _enlarged(self, slots: int) -> list[tuple[str, Values]]:
        return [(quantity, enlarged(total, slots)) for quantity, total in self._sums.items()]

    def _stretch(self, quantity: str, whole_s: Values) -> Values | float:
        if quantity not in self._unknown_s:
            return 1.0
        unknown_s = enlarged(self._unknown_s[quantity], len(whole_s))
        known_s = whole_s - unknown_s
        known_s[known_s <= _ROUNDING * whole_s] = np.nan
        return np.where(unknown_s > 0, whole_s / known_s, 1.0)


def enlarged(values: Values | None, slots: int, fill: float = 0.0) -> Values:
    """Return values with as many slots as asked for, new ones with `fill`; the same array if there are none."""
    held = np.zeros(0) if values is None else values
    missing = slots - len(held)
    return np.concatenate((held, np.full(missing, fill))) if missing else held
