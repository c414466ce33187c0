"""The table of a comparison: figures of A and B, the change, its interval, the verdict."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Generic, TypeVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip

from engine.statistics.verdict import Verdict
from tui.screens.compare.comparison_rows import CompareRow
from tui.text.glyphs import glyphs_of
from tui.text.safe import fit
from tui.widgets.spans import Spanned, Spans

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


_FIGURE, _CHANGE, _INTERVAL, _VERDICT = 7, 8, 17, 12
_TITLE = 13
_STYLES = {Verdict.BETTER: "curve", Verdict.WORSE: "failed", Verdict.DIFFERS: "now", Verdict.UNDECIDED: "muted"}


class CompareTable(RowTable[CompareRow]):
    """Rows of figures with a cursor that stays on its figure."""

    BINDINGS: ClassVar[list[BindingType]] = row_bindings("compare")

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._hint = ""
        self._order = ""
        self._confidence = 0.95
        self._name_width = 4

    @property
    def empty_text(self) -> str:
        """Why there are no rows."""
        return self._hint

    def show(self, rows: Sequence[CompareRow], order: str, confidence: float, hint: str) -> None:
        """Take new rows in their order, and what to say where there are none."""
        self._order, self._confidence, self._hint = order, confidence, hint
        self.put_rows(rows)

    def identity(self, row: CompareRow) -> tuple[str, str, str]:
        """Return the object and the figure of a row."""
        return row.key

    # ------------------------------------------------------------------ drawing

    def lay_out_columns(self) -> None:
        """Give the names what the figures leave."""
        room = self.area.width - 2 - _TITLE - 2 * _FIGURE - _CHANGE - _INTERVAL - _VERDICT
        self._name_width = min(max(room, 4), max(len(row.name) for row in self._rows) + 2)

    def head_strip(self) -> Strip:
        """Draw the header."""
        return self.strip(self._head(self._name_width))

    def row_strip(self, row: CompareRow, above: CompareRow | None, *, is_cursor: bool) -> Strip:
        """Draw a row; a name is drawn once for rows of one object that follow each other."""
        name_above = above.name if above is not None and self._order == "object" else ""
        return self.strip(self._line(row, self._name_width, name_above, is_cursor=is_cursor), at_cursor=is_cursor)

    def _head(self, name: int) -> Spans:
        glyphs = glyphs_of(self)
        interval = f"{100 * self._confidence:g}% interval"
        titles = (
            (" ", "object".ljust(name), "object"),
            ("", "figure".ljust(_TITLE), ""),
            ("", "A".rjust(_FIGURE - 1) + " ", ""),
            ("", "B".rjust(_FIGURE - 1) + " ", ""),
            ("", "B-A".rjust(_CHANGE - 1) + " ", "change"),
            ("", interval.rjust(_INTERVAL - 1) + " ", ""),
            ("", " verdict".ljust(_VERDICT), "verdict"),
        )
        spans = []
        for edge, title, order in titles:
            is_sorted = bool(order) and order == self._order
            arrow = glyphs.descending if order == "change" else glyphs.ascending
            text = _with_arrow(title, arrow) if is_sorted else title
            spans.append((edge + text, "sorted" if is_sorted else "head"))
        return [*spans, (" " * self.area.width, "head")]

    def _line(self, row: CompareRow, name: int, above: str, *, is_cursor: bool) -> Spans:
        glyphs = glyphs_of(self)
        verdict = row.found.verdict
        style = _STYLES.get(verdict, "text")
        shown = "" if row.name == above and not is_cursor else row.name
        mark = row.marked(glyphs.tier_marks)
        return [
            (glyphs.cursor if is_cursor else " ", "text"),
            (f"{fit(shown, name - 1, glyphs.ellipsis):<{name - 1}} ", "text"),
            (f"{fit(row.title + mark.strip(), _TITLE - 1, glyphs.ellipsis):<{_TITLE - 1}} ", "text"),
            (f"{row.figure(row.found.a.mean):>{_FIGURE - 1}} ", "curve"),
            (f"{row.figure(row.found.b.mean):>{_FIGURE - 1}} ", "peak"),
            (f"{row.change:>{_CHANGE - 1}} ", "text"),
            (f"{row.interval:>{_INTERVAL - 1}} ", "text"),
            (f"{glyphs.verdicts[verdict]} {verdict.value}".ljust(_VERDICT), style),
        ]


def _with_arrow(title: str, arrow: str) -> str:
    """Put the arrow behind the word."""
    word = title.strip()
    return title.replace(f"{word} ", f"{word}{arrow}", 1)
