"""Rows and order of a grid: names and sort, vectorised over all rows."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.filtering.expression import Mask
from collectors.model import FrameTable, Rows
from engine.text import whole_number
from tui.text.safe import width_of

NAME = "name"
"""Sort field of the name column, which is not in the registry."""

_NO_LABELS: dict[str, str] = {}
_NO_ROWS: NDArray[np.intp] = np.empty(0, dtype=np.intp)
_NUMBER = re.compile(r"(\d+)")
_LETTERED = re.compile(r"(x?[hsv]d)([a-z]+)(\d*)")


class Sorting(Struct, frozen=True):
    """The field that orders rows. Natural order is largest figure first, and names by the numbers in them."""

    field_id: str
    reverse: bool = False

    @property
    def descending(self) -> bool:
        """Whether values descend from the top."""
        return (self.field_id != NAME) != self.reverse


class RowNames:
    """The names of one set of rows; kept between frames while rows and labels are the same."""

    def __init__(self, rows: Rows, labels: Mapping[str, str] | None) -> None:
        self.rows = rows
        self.labels = _NO_LABELS if labels is None else labels

    def fits(self, rows: Rows, labels: Mapping[str, str] | None) -> bool:
        """Whether these are still the names of these rows."""
        wanted = _NO_LABELS if labels is None else labels
        return rows is self.rows and (wanted is self.labels or wanted == self.labels)

    def shown(self, row: int) -> str:
        """Name of a row as displayed: its label, or its own."""
        return self.labels.get(self.rows.keys[row]) or self.rows.names[row]

    @functools.cached_property
    def all_shown(self) -> list[str]:
        """All names as shown, by row."""
        pick = self.labels.get
        return [pick(key) or name for key, name in zip(self.rows.keys, self.rows.names, strict=True)]

    @functools.cached_property
    def widest(self) -> int:
        """Cells of the widest name."""
        return max(map(width_of, self.all_shown), default=0)

    @functools.cached_property
    def row_of_key(self) -> dict[str, int]:
        """Row by key."""
        return {key: row for row, key in enumerate(self.rows.keys)}

    @functools.cached_property
    def ranks(self) -> NDArray[np.float64]:
        """Rank of each row in the natural order of names: sdb before sdaa, nvme2 before nvme10."""
        shown = self.all_shown
        ordered = sorted(range(len(shown)), key=lambda row: natural_key(shown[row]))
        ranks = np.empty(len(shown), dtype=np.float64)
        ranks[ordered] = np.arange(len(shown))
        return ranks

    @functools.cached_property
    def folded(self) -> list[str]:
        """All names as shown, in lower case, by row."""
        return [name.casefold() for name in self.all_shown]


def natural_key(name: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key with numbers by value, and sd names in the kernel's order (sdz, sdaa)."""
    folded = name.casefold()
    lettered = _LETTERED.fullmatch(folded)
    if lettered:
        series, letters, rest = lettered.groups()
        return ((0, 0, series), (0, len(letters), letters), *_counted(rest))
    return _counted(folded)


def _counted(text: str) -> tuple[tuple[int, int, str], ...]:
    parts = _NUMBER.split(text)
    numbered = ((whole_number(part), part) for part in parts if part)
    return tuple((0, 0, part) if number is None else (1, number, "") for number, part in numbered)


class Order(Protocol):
    """Rows from the top down."""

    def __len__(self) -> int:
        """Count the rows."""

    def window(self, top: int, height: int) -> NDArray[np.intp]:
        """Row numbers from position `top` on, at most `height` of them."""

    def row_at(self, position: int) -> int | None:
        """Row number at a position from the top; None beyond the end."""

    def position_of(self, row: int) -> int | None:
        """Position of a row from the top; None if it is not shown."""


class RowOrder:
    """Rows from the top down, sorted only as far as they are shown: of many thousand, few are.

    Missing figures come last, and equals keep the table's order.
    """

    def __init__(self, rows: NDArray[np.intp], sort_keys: NDArray[np.float64]) -> None:
        self._rows = rows
        self._sort_keys = np.where(np.isnan(sort_keys), np.inf, sort_keys)

    def __len__(self) -> int:
        return len(self._rows)

    def window(self, top: int, height: int) -> NDArray[np.intp]:
        """Row numbers from position `top` on, at most `height` of them."""
        stop = min(top + height, len(self))
        if stop <= top:
            return _NO_ROWS
        last = np.partition(self._sort_keys, stop - 1)[stop - 1]
        before = np.flatnonzero(self._sort_keys < last)
        equal = np.flatnonzero(self._sort_keys == last)[: stop - len(before)]
        positions = np.concatenate((before, equal))
        ordered = positions[np.argsort(self._sort_keys[positions], kind="stable")]
        return self._rows[ordered[top:]]

    def row_at(self, position: int) -> int | None:
        """Row number at a position from the top; None beyond the end."""
        rows = self.window(position, 1) if position >= 0 else _NO_ROWS
        return int(rows[0]) if len(rows) else None

    def position_of(self, row: int) -> int | None:
        """Position of a row from the top; None if it is filtered out."""
        index = int(np.searchsorted(self._rows, row))
        if index == len(self) or self._rows[index] != row:
            return None
        key = self._sort_keys[index]
        return int(np.count_nonzero(self._sort_keys < key) + np.count_nonzero(self._sort_keys[:index] == key))


def _sort_values(table: FrameTable, field_id: str) -> NDArray[np.float64] | None:
    """Values to sort by: those that a screen gives for the order, else the figure."""
    return table.columns.get(f"{field_id}:order", table.columns.get(field_id))


def order_rows(table: FrameTable, names: RowNames, sorting: Sorting, found: Mask | None) -> RowOrder:
    """Order the rows that were found, or all; a field the table lacks keeps the table's order."""
    rows = np.arange(len(table.rows)) if found is None else np.flatnonzero(found)
    values = names.ranks if sorting.field_id == NAME else _sort_values(table, sorting.field_id)
    if values is None:
        return RowOrder(rows, np.zeros(len(rows)))
    chosen = values if found is None else values[rows]
    return RowOrder(rows, -chosen if sorting.descending else chosen)


class Arrangement(Protocol):
    """The arrangement of a grid's rows: order, prefix of names, and text instead of figures."""

    @property
    def prefix_width(self) -> int:
        """Cells of the widest prefix."""

    def inherited(self, found: Mask) -> Mask:
        """Add the rows below those found by their name."""

    def order(self, table: FrameTable, names: RowNames, sorting: Sorting, found: Mask | None) -> Order:
        """Order the rows that were found, or all."""

    def prefix(self, row: int) -> str:
        """Return the prefix of a row's name."""

    def cell_text(self, field_id: str, row: int) -> str | None:
        """Return the text of a cell in a text column; None shows its figure."""


class FlatArrangement:
    """A plain list: rows by their own figures, nothing before their names."""

    prefix_width = 0

    def inherited(self, found: Mask) -> Mask:
        """No row is below another."""
        return found

    def order(self, table: FrameTable, names: RowNames, sorting: Sorting, found: Mask | None) -> Order:
        """Order rows by the field."""
        return order_rows(table, names, sorting, found)

    def prefix(self, row: int) -> str:  # noqa: ARG002 - of the protocol
        """Nothing."""
        return ""

    def cell_text(self, field_id: str, row: int) -> str | None:  # noqa: ARG002 - of the protocol
        """None: every column has figures."""
        return None


FLAT: Arrangement = FlatArrangement()
NO_ORDER: Order = RowOrder(_NO_ROWS, np.empty(0))
