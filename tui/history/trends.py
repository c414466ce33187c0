"""The recent history of the rows of a table, for the small pictures beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tui.history.charts import History

SAMPLES_PER_CELL = 5
"""Samples after which the picture moves by a whole cell; it does not change in between, so that little is sent."""
_SECOND_NS = 1_000_000_000

RowOf = Callable[[str], "tuple[str, str] | None"]
"""Maps the key of a shown row to the table and key of its history; None for a row without one."""


def by_cells(
    times_ns: NDArray[np.int64], values: NDArray[np.float32], cells: int, cell_ns: int, end_ns: int
) -> NDArray[np.float64]:
    """Take the largest value of each cell of fixed times, of shape (cells, rows); NaN where there is none.

    The last cell contains `end_ns`; `values` has shape (times, rows), and times do not decrease.
    """
    result = np.full((cells, values.shape[1]), np.nan)
    cell = (times_ns - 1) // cell_ns - ((end_ns - 1) // cell_ns - cells + 1)
    inside = (cell >= 0) & (cell < cells)
    if inside.any():
        numbers, seen = cell[inside], values[inside].astype(np.float64)
        starts = np.concatenate(([0], np.flatnonzero(np.diff(numbers)) + 1))
        result[numbers[starts]] = np.fmax.reduceat(seen, starts, axis=0)
    return result


class Trends(Struct, frozen=True):
    """Recent histories up to a moment; the cell that is not complete yet is left out."""

    history: History
    end_ns: int
    interval_s: float
    row_of: RowOf

    def of(self, keys: Sequence[str], field_id: str, cells: int) -> NDArray[np.float64]:
        """History of a field for shown rows, of shape (rows, cells), NaN where it is not known."""
        result = np.full((len(keys), cells), np.nan)
        cell_ns = max(1, round(SAMPLES_PER_CELL * self.interval_s * _SECOND_NS))
        end_ns = self.end_ns // cell_ns * cell_ns
        wanted: dict[str, list[tuple[int, str]]] = {}
        for position, key in enumerate(keys):
            row = self.row_of(key)
            if row is not None:
                wanted.setdefault(row[0], []).append((position, row[1]))
        for table, rows in wanted.items():
            positions, row_keys = zip(*rows, strict=True)
            span_ns = cells * cell_ns
            times_ns, values = self.history.recent(table, row_keys, field_id, end_ns, span_ns)
            result[list(positions)] = by_cells(times_ns, values, cells, cell_ns, end_ns).T
        return result


def rows_of(table: str) -> RowOf:
    """Rows whose history is in one table under their own keys."""
    return lambda key: (table, key)
