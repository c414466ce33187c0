"""The view of a grid on one frame table: order, filter and its editing, and a cursor that stays on its key."""

from __future__ import annotations

from collections.abc import Mapping

from textual import events

from collectors.model import FrameTable
from tui.widgets.grid.rows import FLAT, NO_ORDER, Arrangement, RowNames, Sorting

_LONGEST = 64


class FilterLine:
    """Owns the filter of one grid and whether it is being edited."""

    def __init__(self) -> None:
        self.text = ""
        self.editing = False

    def handle(self, event: events.Key) -> bool:
        """Take a key while editing; false for keys that are not the filter's."""
        if event.key in ("enter", "escape"):
            self.editing = False
            if event.key == "escape":
                self.text = ""
        elif event.key in ("backspace", "ctrl+h"):
            self.text = self.text[:-1]
        elif event.key == "ctrl+u":
            self.text = ""
        elif event.is_printable and event.character is not None:
            self.add(event.character)
        else:
            return False
        return True

    def add(self, text: str) -> None:
        """Append typed or pasted text: its first line, limited to the length of a name."""
        self.text = (self.text + "".join(text.splitlines()[:1]))[:_LONGEST]


class RowView:
    """Owns order, filter and cursor of a grid.

    The cursor stays on its key while rows move. Until it is first moved, and again after `follow_first`, it stays on
    the first row instead, so that an untouched screen shows the hottest.
    """

    def __init__(self, sorting: Sorting, arrangement: Arrangement = FLAT) -> None:
        self.sorting = sorting
        self.arrangement = arrangement
        self.table: FrameTable | None = None
        self.names: RowNames | None = None
        self.order = NO_ORDER
        self.cursor = 0
        """Position of the cursor from the top; 0 without rows."""
        self.cursor_key: str | None = None
        self.pinned = False
        self._filter_text = ""

    def show(self, table: FrameTable | None, labels: Mapping[str, str] | None) -> None:
        """Take new figures."""
        self.table = table
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
        """Show only rows whose name contains a text; empty shows all."""
        self._filter_text = text
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
            self.order = self.arrangement.order(self.table, self.names, self.sorting, self._filter_text)
        position = self._position_of(self.cursor_key) if self.pinned and self.cursor_key is not None else 0
        self._settle(self.cursor if position is None else position)

    def _settle(self, position: int) -> None:
        self.cursor = max(0, min(position, len(self.order) - 1))
        self.cursor_key = self.key_at(self.cursor)

    def _position_of(self, key: str) -> int | None:
        """Position of a key from the top; None if the key is gone or filtered out."""
        row = None if self.names is None else self.names.row_of_key.get(key)
        return None if row is None else self.order.position_of(row)
