"""Rows of a grid as an outline: branches that open and close, siblings sorted by figures."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from collectors.filtering.expression import Mask
from collectors.model import FrameTable, Rows
from tui.widgets.grid.rows import NAME, Order, RowNames, Sorting

RowNumbers = NDArray[np.intp]

OPENED, CLOSED, LEAF = "- ", "+ ", "  "
_INDENT = 2
_NO_ROWS: RowNumbers = np.empty(0, np.intp)


class ListedOrder:
    """Rows in a precomputed order."""

    def __init__(self, rows: RowNumbers) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def window(self, top: int, height: int) -> RowNumbers:
        """Row numbers from position `top` on, at most `height` of them."""
        return self._rows[max(0, top) : max(0, top + height)]

    def row_at(self, position: int) -> int | None:
        """Row number at a position from the top; None beyond the end."""
        return int(self._rows[position]) if 0 <= position < len(self._rows) else None

    def position_of(self, row: int) -> int | None:
        """Position of a row from the top; None if it is not shown."""
        found = np.flatnonzero(self._rows == row)
        return int(found[0]) if len(found) else None


class Outline:
    """Owns which branches are open; an arrangement for a grid.

    Only shown rows are sorted, all of one level at once. A filter shows all matching rows and their parents.
    """

    def __init__(self) -> None:
        self.opened: set[str] = set()
        """Keys of open branches."""
        self.passes: NDArray[np.bool_] | None = None
        """Leaf rows to show; None for all."""
        self.ties: str = ""
        """Field that orders equals, the largest first and by powers of two, so that rows do not jump."""
        self._rows = Rows((), ())
        self._parents = _NO_ROWS
        self._depth = _NO_ROWS
        self._branch = np.empty(0, np.bool_)
        self._filtered = False

    @property
    def prefix_width(self) -> int:
        """Cells of the widest prefix."""
        return _INDENT * (int(self._depth.max(initial=0)) + 1) if self._branch.any() else 0

    def adopt(self, rows: Rows, parents: RowNumbers, branch: NDArray[np.bool_]) -> None:
        """Take the rows of a table.

        Args:
            rows: of the table.
            parents: row of the parent of each row, -1 at the top; a parent comes before its children.
            branch: rows that can be opened, even if their children are not among the rows yet.
        """
        if rows is self._rows and branch is self._branch:
            return
        self._rows, self._parents, self._branch = rows, parents, branch
        self._depth = np.zeros(len(parents), np.intp)
        for row in np.flatnonzero(parents >= 0).tolist():
            self._depth[row] = self._depth[parents[row]] + 1

    def is_branch(self, key: str) -> bool:
        """Whether a row can be opened."""
        row = self._rows.positions.get(key)
        return row is not None and bool(self._branch[row])

    def toggle(self, key: str) -> None:
        """Open or close a branch."""
        self.opened ^= {key}

    def inherited(self, found: Mask) -> Mask:
        """Add the rows below those found by their name."""
        if len(found) != len(self._rows):
            return found
        found = found.copy()
        for depth in range(1, int(self._depth.max(initial=0)) + 1):
            level = np.flatnonzero(self._depth == depth)
            found[level] |= found[self._parents[level]]
        return found

    def order(self, table: FrameTable, names: RowNames, sorting: Sorting, found: Mask | None) -> Order:
        """Order siblings by the field, from the top down through open branches, or all those with found rows."""
        if table.rows is not self._rows:
            return ListedOrder(_NO_ROWS)
        found = self._with_parents(found)
        self._filtered = found is not None
        shown = self._shown() if found is None else found
        return ListedOrder(self._sorted(shown, self._ranks(table, names, sorting)))

    def prefix(self, row: int) -> str:
        """Indent, and whether the branch is open."""
        if not self._branch.any():
            return ""
        sign = LEAF
        if self._branch[row]:
            sign = OPENED if self._filtered or self._is_open(row) else CLOSED
        return " " * _INDENT * int(self._depth[row]) + sign

    def cell_text(self, field_id: str, row: int) -> str | None:  # noqa: ARG002 - of the protocol
        """None: every column has figures."""
        return None

    def _is_open(self, row: int) -> bool:
        return self._rows.keys[row] in self.opened

    def _ranks(self, table: FrameTable, names: RowNames, sorting: Sorting) -> tuple[NDArray[np.float64], ...]:
        """Sort keys in the order of numpy.lexsort (last is primary); missing figures come last."""
        values = names.ranks if sorting.field_id == NAME else table.columns.get(sorting.field_id)
        first = np.zeros(len(table.rows)) if values is None else values
        first = np.where(np.isnan(first), np.inf, -first if sorting.descending else first)
        ties = table.columns.get(self.ties)
        return (first,) if ties is None else (-np.floor(np.log2(1.0 + np.nan_to_num(ties))), first)

    def _shown(self) -> Mask:
        """Rows whose branches above are all open."""
        opened = np.zeros(len(self._rows), np.bool_)
        opened[[self._rows.positions[key] for key in self.opened if key in self._rows.positions]] = True
        shown = self._parents < 0
        for depth in range(1, int(self._depth.max(initial=0)) + 1):
            level = np.flatnonzero(self._depth == depth)
            above = self._parents[level]
            shown[level] = shown[above] & opened[above]
        return shown

    def _sorted(self, shown: Mask, ranks: tuple[NDArray[np.float64], ...]) -> RowNumbers:
        """Order rows from the top down, each before those below it; with a row, all above it must be shown."""
        levels = [
            np.flatnonzero(shown & (self._depth == depth)) for depth in range(int(self._depth.max(initial=0)) + 1)
        ]
        sizes = np.ones(len(shown), np.intp)
        for level in reversed(levels[1:]):
            np.add.at(sizes, self._parents[level], sizes[level])
        positions = np.full(len(shown), -1, np.intp)
        for level in levels:
            above = np.where(self._parents[level] < 0, -1, positions[self._parents[level]])
            by_rank = np.lexsort((*(rank[level] for rank in ranks), above))
            ordered, above = level[by_rank], above[by_rank]
            before = np.cumsum(sizes[ordered]) - sizes[ordered]
            first = np.searchsorted(above, above)
            positions[ordered] = above + 1 + before - before[first]
        rows = np.flatnonzero(shown)
        order = np.empty(len(rows), np.intp)
        order[positions[rows]] = rows
        return order

    def _with_parents(self, found: Mask | None) -> Mask | None:
        """Rows that pass all filters, with their parents; None without a filter."""
        if found is None and self.passes is None:
            return None
        found = np.ones(len(self._rows), np.bool_) if found is None else found.copy()
        if self.passes is not None:
            found &= self.passes
        for depth in range(int(self._depth.max(initial=0)), 0, -1):
            level = np.flatnonzero((self._depth == depth) & found)
            found[self._parents[level]] = True
        return found
