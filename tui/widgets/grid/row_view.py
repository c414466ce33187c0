"""The view of a grid on one frame table: order, filter, pinned rows, and a cursor that stays on its key."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from collectors.filtering.expression import Mask
from collectors.model import FrameTable
from collectors.subject import Active
from tui.widgets.grid.filtering import NO_TEXTS, GridFilter, GridRows, RowTexts
from tui.widgets.grid.rows import FLAT, NO_ORDER, Arrangement, Order, RowNames, Sorting


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


class RowView:
    """Owns order, filter and cursor of a grid.

    The cursor stays on its key while rows move. Until it is first moved, and again after `follow_first`, it stays on
    the first row instead, so that an untouched screen shows the hottest.
    """

    def __init__(
        self,
        sorting: Sorting,
        arrangement: Arrangement = FLAT,
        grid_filter: GridFilter | None = None,
        active: Active | None = None,
    ) -> None:
        """Take the order; `active` says which rows are not idle, if any can be."""
        self.sorting = sorting
        self.grid_filter = grid_filter or GridFilter(())
        self.idle_hidden = False
        self.matched: int | None = None
        """Rows that match the filter, and are not idle if those are hidden; None if all are shown."""
        self.top_keys: tuple[str, ...] = ()
        """Keys of the rows pinned to the top, the first pinned first."""
        self.arrangement = arrangement
        self.table: FrameTable | None = None
        self.names: RowNames | None = None
        self.order: Order = NO_ORDER
        self.cursor = 0
        """Position of the cursor from the top; 0 without rows."""
        self.cursor_key: str | None = None
        self.pinned = False
        self._active = active
        self._texts: RowTexts = NO_TEXTS

    def show(self, table: FrameTable | None, labels: Mapping[str, str] | None, texts: RowTexts = NO_TEXTS) -> None:
        """Take new figures."""
        self.table, self._texts = table, texts
        self.grid_filter.know(texts)
        if table is None:
            self.names = None
        elif self.names is None or not self.names.fits(table.rows, labels):
            self.names = RowNames(table.rows, labels)
        self._reorder()

    def sort(self, sorting: Sorting) -> None:
        """Reorder rows."""
        self.sorting = sorting
        self._reorder()

    def filter(self, text: str) -> None:
        """Show only rows that match; empty shows all."""
        self.grid_filter.text = text
        self._reorder()

    def hide_idle(self, hidden: bool) -> None:
        """Hide rows without I/O, or show them."""
        self.idle_hidden = hidden and self._active is not None
        self._reorder()

    def pin(self, key: str) -> None:
        """Keep a row at the top, or no longer."""
        others = tuple(top for top in self.top_keys if top != key)
        self.top_keys = (*others, key) if others == self.top_keys else others
        self._reorder()

    def rearrange(self) -> None:
        """Reorder rows because the arrangement changed."""
        self._reorder()

    def move(self, position: int) -> None:
        """Move the cursor to a position, clipped to the rows, and keep it on that row."""
        self.pinned = True
        self._settle(position)

    def follow_first(self) -> None:
        """Keep the cursor on the first row."""
        self.pinned = False
        self._settle(0)

    def move_to_key(self, key: str) -> bool:
        """Move the cursor to the row of a key; false if no shown row has it."""
        position = self._position_of(key)
        if position is None:
            return False
        self.move(position)
        return True

    def key_at(self, position: int) -> str | None:
        """Key of the row at a position from the top."""
        row = self.order.row_at(position)
        return None if self.table is None or row is None else self.table.rows.keys[row]

    def name_at(self, position: int) -> str:
        """Name, as displayed, of the row at a position from the top; empty beyond the end."""
        row = self.order.row_at(position)
        return "" if self.names is None or row is None else self.names.shown(row)

    def _reorder(self) -> None:
        if self.table is None or self.names is None:
            self.order = NO_ORDER
        else:
            found = self._found(self.table, self.names)
            self.matched = None if found is None else int(found.sum())
            self.order = self._with_pinned(self.arrangement.order(self.table, self.names, self.sorting, found))
        position = self._position_of(self.cursor_key) if self.pinned and self.cursor_key is not None else 0
        self._settle(self.cursor if position is None else position)

    def _found(self, table: FrameTable, names: RowNames) -> Mask | None:
        """Rows that match the filter and are not hidden as idle; None if nothing hides any."""
        rows = GridRows(table, names, self._texts, self.arrangement.inherited, self.grid_filter.search)
        found = self.grid_filter.found(rows)
        if not self.idle_hidden or self._active is None:
            return found
        active = self._active(table)
        return active if found is None else found & active

    def _with_pinned(self, order: Order) -> Order:
        rows = {} if self.names is None else self.names.row_of_key
        pinned = tuple(rows[key] for key in self.top_keys if key in rows)
        return PinnedOrder(pinned, order) if pinned else order

    def _settle(self, position: int) -> None:
        self.cursor = max(0, min(position, len(self.order) - 1))
        self.cursor_key = self.key_at(self.cursor)

    def _position_of(self, key: str) -> int | None:
        """Position of a key from the top; None if the key is gone or filtered out."""
        row = None if self.names is None else self.names.row_of_key.get(key)
        return None if row is None else self.order.position_of(row)
