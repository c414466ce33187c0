"""Rows that stay at the top of a grid, whatever the order and the filter of the others."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from tui.widgets.grid.rows import Order


class PinnedOrder:
    """Pinned rows first, then the others in their order."""

    def __init__(self, pinned: tuple[int, ...], others: Order) -> None:
        """Take row numbers, and an order that may contain them."""
        self._pinned = np.array(pinned, np.intp)
        self._others = others

    @functools.cached_property
    def _taken(self) -> NDArray[np.intp]:
        """Positions of the pinned rows in the order of the others, ascending."""
        positions = (self._others.position_of(int(row)) for row in self._pinned)
        return np.array(sorted(position for position in positions if position is not None), np.intp)

    def __len__(self) -> int:
        return len(self._pinned) + len(self._others) - len(self._taken)

    def window(self, top: int, height: int) -> NDArray[np.intp]:
        """Row numbers from position `top` on, at most `height` of them."""
        top, stop, count = max(0, top), max(0, top + height), len(self._pinned)
        if stop <= count:
            return self._pinned[top:stop]
        others = self._others.window(0, stop - count + len(self._taken))
        others = others[~np.isin(others, self._pinned)]
        return np.concatenate((self._pinned[top:], others[max(0, top - count) : stop - count]))

    def row_at(self, position: int) -> int | None:
        """Row number at a position from the top; None beyond the end."""
        rows = self.window(position, 1) if position >= 0 else self._pinned[:0]
        return int(rows[0]) if len(rows) else None

    def position_of(self, row: int) -> int | None:
        """Position of a row from the top; None if it is not shown."""
        pinned = np.flatnonzero(self._pinned == row)
        if len(pinned):
            return int(pinned[0])
        position = self._others.position_of(row)
        if position is None:
            return None
        return len(self._pinned) + position - int(np.searchsorted(self._taken, position))
