"""The rates of a search as a table: figures, and the class of each rate for each limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import BindingType
from textual.strip import Strip

from collectors.field import Unit
from engine.rate_search.bounds import LoadClass
from engine.rate_search.plan import RatePoint
from engine.text import safe_text
from tui.sweep.rate_rows import LimitClass, RateRow
from tui.text.format import MISSING_TEXT, format_quantity
from tui.text.glyphs import glyphs_of
from tui.text.safe import fit
from tui.widgets.row_table import RowTable, row_bindings
from tui.widgets.spans import Spans

_COLUMNS = (
    ("rate", "rate/s", 7, Unit.PER_SECOND),
    ("iops", "IOPS", 6, Unit.PER_SECOND),
    ("mean", "mean ms", 7, Unit.MILLISECONDS),
    ("p99", "p99 ms", 7, Unit.MILLISECONDS),
    ("p99.9", "p99.9 ms", 8, Unit.MILLISECONDS),
)
_NEEDED = ("rate", "iops")
_LEFT_OUT_FIRST = ("mean", "p99.9", "p99")
_CLASS = 12
"""Cells of a class: its word, and how many trials kept the limit."""
_EDGE = 2
_LEAST_WORDS = 12
CLASS_WORDS = {LoadClass.LOWER: "lower", LoadClass.UPPER: "UPPER", LoadClass.UNDECIDED: "?"}
_STYLES = {LoadClass.LOWER: "curve", LoadClass.UPPER: "failed", LoadClass.UNDECIDED: "muted"}


class RateTable(RowTable[RateRow]):
    """The rates of one combination."""

    BINDINGS: ClassVar[list[BindingType]] = row_bindings("sweep")
    empty_text = "no rates"

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._limits: tuple[str, ...] = ()
        self._front = 0
        self._sort = ("", False)
        self._columns: list[tuple[str, str, int, Unit]] = []
        self._shown_limits: list[int] = []

    def show(self, rows: Sequence[RateRow], limits: tuple[str, ...], front: int, sort: tuple[str, bool]) -> None:
        """Take new rows in their order, the limits, and the number of the one that comes first."""
        self._limits, self._front, self._sort = limits, front, sort
        self.put_rows(rows)

    def identity(self, row: RateRow) -> RatePoint:
        """Return the rate of a row."""
        return row.point

    def lay_out_columns(self) -> None:
        """Leave out figures before limits, and limits before the one in front."""
        room, columns = self.area.width - _EDGE - _LEAST_WORDS, list(_COLUMNS)
        order = [(self._front + number) % len(self._limits) for number in range(len(self._limits))]
        wanted = len(order) * (self._class_width + 1)
        for name in _LEFT_OUT_FIRST:
            if sum(width + 1 for _, _, width, _ in columns) + wanted <= room:
                break
            columns = [column for column in columns if column[0] != name]
        left = room + _LEAST_WORDS - sum(width + 1 for _, _, width, _ in columns)
        self._columns, self._shown_limits = columns, order[: max(left // (self._class_width + 1), 1)]

    @property
    def _class_width(self) -> int:
        return max((_CLASS, *map(len, self._limits)))

    def head_strip(self) -> Strip:
        """Draw the header."""
        titles = ((name, title, width) for name, title, width, _ in self._columns)
        spans = [(" " * _EDGE, "head"), *self.title_spans(titles, self._sort)]
        for number in self._shown_limits:
            is_front = number == self._front
            spans.append((f"{self._limits[number]:<{self._class_width}} ", "sorted" if is_front else "head"))
        hidden = len(self._limits) - len(self._shown_limits)
        spans.append(((f"+{hidden} more: m" if hidden else "").ljust(self.area.width), "head"))
        return self.strip(spans)

    def row_strip(self, row: RateRow, above: RateRow | None, *, is_cursor: bool) -> Strip:  # noqa: ARG002 - each row says all
        """Draw a row."""
        glyphs = glyphs_of(self)
        is_now = row.words.startswith("trying")
        spans = [((glyphs.cursor if is_cursor else " ").ljust(_EDGE), "text")]
        for name, _, width, unit in self._columns:
            value = row.figure(name)
            text = MISSING_TEXT if value is None else format_quantity(value, unit, width)
            if name == "rate" and value is not None:
                text = f"{value:,.0f}" if value < 1e6 else format_quantity(value, unit, width)
            spans.append((f"{text.rjust(width)} ", "now" if is_now and name == "rate" else "text"))
        for number in self._shown_limits:
            spans += self._class(row.classes[number]) if row.classes else [(" " * (self._class_width + 1), "text")]
        room = self.area.width - sum(len(text) for text, _ in spans)
        spans.append((fit(safe_text(row.words), max(room, 0), glyphs.ellipsis), "now" if is_now else "failed"))
        return self.strip(spans, at_cursor=is_cursor)

    def _class(self, found: LimitClass) -> Spans:
        word = CLASS_WORDS[found.found]
        bracketed = f"[{word}]" if found.is_bound else f" {word} "
        count = f"{found.kept}/{found.trials}"
        width = self._class_width
        style = "mark" if found.is_bound else _STYLES[found.found]
        return [(f"{bracketed:<{width - len(count)}}{count} "[: width + 1], style)]
