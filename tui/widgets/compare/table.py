"""The table of a comparison: figures of A and B, the change, its interval, the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from engine.statistics.verdict import Verdict
from tui.compare.rows import CompareRow
from tui.text.glyphs import glyphs_of
from tui.text.safe import fit
from tui.widgets.sweep.spans import Spanned, Spans

_FIGURE, _CHANGE, _INTERVAL, _VERDICT = 7, 8, 17, 12
_TITLE = 13
_STYLES = {Verdict.BETTER: "curve", Verdict.WORSE: "failed", Verdict.DIFFERS: "now", Verdict.UNDECIDED: "muted"}


class CompareTable(Spanned, can_focus=True, inherit_bindings=False):
    """Rows of figures with a cursor that stays on its figure."""

    TAKES_ARROWS = True
    DEFAULT_CSS = """
    CompareTable { overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Row above", show=False, id="compare-up"),
        Binding("down,j", "move(1)", "Row below", show=False, id="compare-down"),
        Binding("pageup", "page(-1)", "Page up", show=False, id="compare-page-up"),
        Binding("pagedown", "page(1)", "Page down", show=False, id="compare-page-down"),
    ]

    class ComparedRowMoved(Message):
        """The cursor is on another figure."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._rows: Sequence[CompareRow] = ()
        self._hint = ""
        self._order = ""
        self._confidence = 0.95
        self._cursor = 0
        self._at: tuple[str, str, str] | None = None

    @property
    def cursor_row(self) -> CompareRow | None:
        """Row under the cursor; None without rows."""
        return self._rows[self._cursor] if self._cursor < len(self._rows) else None

    def show(self, rows: Sequence[CompareRow], order: str, confidence: float, hint: str) -> None:
        """Take new rows in their order, and what to say where there are none."""
        self._rows, self._order, self._confidence, self._hint = rows, order, confidence, hint
        position = next((number for number, row in enumerate(rows) if row.key == self._at), self._cursor)
        self._put(position, follow=False)

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
        self._at = before if row is None else row.key
        if self.virtual_size.height != len(self._rows) + 1:
            self.virtual_size = Size(0, len(self._rows) + 1)
        room, top = max(self.area.height - 1, 1), self.scroll_offset.y
        if follow and not top <= self._cursor < top + room:
            to = self._cursor if self._cursor < top else self._cursor - room + 1
            self.scroll_to(y=to, animate=False, force=True)
        self.repaint()
        if self._at != before:
            self.post_message(self.ComparedRowMoved())

    # ------------------------------------------------------------------ drawing

    def draw_lines(self) -> list[Strip]:
        """Header and visible rows."""
        if not self._rows:
            return self.hint(self._hint)
        top, room = self.scroll_offset.y, self.area.height - 1
        name = max(self.area.width - 2 - _TITLE - 2 * _FIGURE - _CHANGE - _INTERVAL - _VERDICT, 4)
        name = min(name, max(len(row.name) for row in self._rows) + 2)
        lines = [self.strip(self._head(name))]
        for number in range(top, min(top + room, len(self._rows))):
            is_cursor = number == self._cursor
            above = self._rows[number - 1].name if number > top and self._order == "object" else ""
            spans = self._line(self._rows[number], name, above, is_cursor=is_cursor)
            lines.append(self.strip(spans, at_cursor=is_cursor))
        return self.filled(lines)

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
