"""A table with a cursor that stays on its row, whatever order the rows come in."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip

from tui.widgets.spans import Spanned

Row = TypeVar("Row")


def row_bindings(screen: str) -> list[BindingType]:
    """Return the keys that move the cursor; their ids, for `[keys]` of the settings, begin with the screen's name."""
    return [
        Binding("up,k", "move(-1)", "Row above", show=False, id=f"{screen}-up"),
        Binding("down,j", "move(1)", "Row below", show=False, id=f"{screen}-down"),
        Binding("pageup", "page(-1)", "Page up", show=False, id=f"{screen}-page-up"),
        Binding("pagedown", "page(1)", "Page down", show=False, id=f"{screen}-page-down"),
    ]


class RowTable(Spanned, Generic[Row], can_focus=True, inherit_bindings=False):
    """Rows below a header; subclasses say what identifies a row, and draw it."""

    TAKES_ARROWS = True
    DEFAULT_CSS = """
    RowTable { overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1; }
    """

    class RowMoved(Message):
        """The cursor is on another row."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._rows: Sequence[Row] = ()
        self._cursor = 0
        self._at: object = None

    @property
    def cursor_row(self) -> Row | None:
        """Row under the cursor; None without rows."""
        return self._rows[self._cursor] if self._cursor < len(self._rows) else None

    def put_rows(self, rows: Sequence[Row]) -> None:
        """Take new rows in their order."""
        self._rows = rows
        self._move_to(self._position(self._at, self._cursor), follow=False)

    def go_to(self, identity: object) -> None:
        """Move the cursor to a row, if it is here."""
        self._move_to(self._position(identity, self._cursor))

    def action_move(self, rows: int) -> None:
        """Move the cursor."""
        self._move_to(self._cursor + rows)

    def action_page(self, pages: int) -> None:
        """Move the cursor by pages."""
        self.action_move(pages * max(1, self.area.height - 2))

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to a row."""
        offset = event.get_content_offset(self)
        if offset is not None and offset.y > 0:
            self._move_to(offset.y - 1 + self.scroll_offset.y)

    def on_resize(self) -> None:
        """Lay out again and keep the cursor visible."""
        self.forget_lines()
        self._move_to(self._cursor)

    def _position(self, identity: object, otherwise: int) -> int:
        found = (number for number, row in enumerate(self._rows) if self.identity(row) == identity)
        return next(found, otherwise)

    def _move_to(self, position: int, *, follow: bool = True) -> None:
        self._cursor = max(0, min(position, len(self._rows) - 1))
        before, row = self._at, self.cursor_row
        if row is not None:
            self._at = self.identity(row)
        self.set_line_count(len(self._rows) + 1)
        room, top = max(self.area.height - 1, 1), self.scroll_offset.y
        if follow and not top <= self._cursor < top + room:
            to = self._cursor if self._cursor < top else self._cursor - room + 1
            self.scroll_to(y=to, animate=False, force=True)
        self.repaint()
        if self._at != before:
            self.post_message(self.RowMoved())

    # ------------------------------------------------------------------ drawing

    def draw_lines(self) -> list[Strip]:
        """Header and visible rows."""
        if not self._rows:
            return self.hint(self.empty_text)
        self.lay_out_columns()
        top, room = self.scroll_offset.y, self.area.height - 1
        lines = [self.head_strip()]
        for number in range(top, min(top + room, len(self._rows))):
            above = self._rows[number - 1] if number > top else None
            lines.append(self.row_strip(self._rows[number], above, is_cursor=number == self._cursor))
        return self.filled(lines)

    @property
    @abstractmethod
    def empty_text(self) -> str:
        """What is shown without rows."""

    @abstractmethod
    def identity(self, row: Row) -> object:
        """Return what stays the same while the row's figures change."""

    @abstractmethod
    def lay_out_columns(self) -> None:
        """Choose the columns that fit."""

    @abstractmethod
    def head_strip(self) -> Strip:
        """Draw the header."""

    @abstractmethod
    def row_strip(self, row: Row, above: Row | None, *, is_cursor: bool) -> Strip:
        """Draw a row; `above` is the one above it on the screen."""
