"""The table of a comparison: figures of A and B, the change, its interval, the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import BindingType
from textual.strip import Strip

from engine.statistics.verdict import Verdict
from tui.screens.compare.rows import CompareRow
from tui.text.glyphs import glyphs_of
from tui.text.safe import fit
from tui.widgets.row_table import RowTable, row_bindings
from tui.widgets.spans import Spans

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
