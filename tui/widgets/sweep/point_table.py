"""A table of points with a cursor that stays on its point, whatever order the rows come in."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Generic, Protocol, TypeVar

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from tui.widgets.sweep.spans import Spanned


class PointedRow(Protocol):
    """A row that belongs to a point."""

    @property
    def point(self) -> object:
        """Which stays the same while its figures change."""


Row = TypeVar("Row", bound=PointedRow)


class PointTable(Spanned, Generic[Row], can_focus=True, inherit_bindings=False):
    """Rows of points; subclasses draw them."""

    TAKES_ARROWS = True
    DEFAULT_CSS = """
    PointTable { overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Row above", show=False, id="sweep-up"),
        Binding("down,j", "move(1)", "Row below", show=False, id="sweep-down"),
        Binding("pageup", "page(-1)", "Page up", show=False, id="sweep-page-up"),
        Binding("pagedown", "page(1)", "Page down", show=False, id="sweep-page-down"),
    ]

    class RowMoved(Message):
        """The cursor is on another point."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._rows: Sequence[Row] = ()
        self._sort = ("", False)
        self._cursor = 0
        self._at: object = None

    @property
    def cursor_row(self) -> Row | None:
        """Row under the cursor; None without rows."""
        return self._rows[self._cursor] if self._cursor < len(self._rows) else None

    def put_rows(self, rows: Sequence[Row], sort: tuple[str, bool]) -> None:
        """Take new rows in their order; `sort` is what they are sorted by, and whether descending."""
        self._rows, self._sort = rows, sort
        position = next((number for number, row in enumerate(rows) if row.point == self._at), self._cursor)
        self._put(position, follow=False)

    def go_to(self, point: object) -> None:
        """Move the cursor to a point."""
        position = next((number for number, row in enumerate(self._rows) if row.point == point), None)
        if position is not None:
            self._put(position)

    def action_move(self, rows: int) -> None:
        """Move the cursor."""
        self._put(self._cursor + rows)

    def action_page(self, pages: int) -> None:
        """Move the cursor by pages."""
        self.action_move(pages * max(1, self.area.height - 2))

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to a row."""
        offset = event.get_content_offset(self)
        if offset is not None and offset.y > 0:
            self._put(offset.y - 1 + self.scroll_offset.y)

    def on_resize(self) -> None:
        """Lay out again and keep the cursor visible."""
        self.forget_lines()
        self._put(self._cursor)

    def _put(self, position: int, *, follow: bool = True) -> None:
        self._cursor = max(0, min(position, len(self._rows) - 1))
        before, row = self._at, self.cursor_row
        self._at = None if row is None else row.point
        if self.virtual_size.height != len(self._rows) + 1:
            self.virtual_size = Size(0, len(self._rows) + 1)
        room, top = max(self.area.height - 1, 1), self.scroll_offset.y
        if follow and not top <= self._cursor < top + room:
            to = self._cursor if self._cursor < top else self._cursor - room + 1
            self.scroll_to(y=to, animate=False, force=True)
        self.repaint()
        if self._at is not None and self._at != before:
            self.post_message(self.RowMoved())

    # ------------------------------------------------------------------ drawing

    def draw_lines(self) -> list[Strip]:
        """Header and visible rows."""
        if not self._rows:
            return self.hint("no points")
        self.lay_out_columns()
        top, room = self.scroll_offset.y, self.area.height - 1
        lines = [self.head_strip()]
        for number in range(top, min(top + room, len(self._rows))):
            lines.append(self.row_strip(self._rows[number], is_cursor=number == self._cursor))
        return self.filled(lines)

    @abstractmethod
    def lay_out_columns(self) -> None:
        """Choose the columns that fit."""

    @abstractmethod
    def head_strip(self) -> Strip:
        """Draw the header."""

    @abstractmethod
    def row_strip(self, row: Row, *, is_cursor: bool) -> Strip:
        """Draw a row."""
