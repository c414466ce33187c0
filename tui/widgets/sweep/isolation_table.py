"""The points of an isolation curve as a table: the aggressor and its cap, and what the victim gets beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import BindingType
from textual.strip import Strip

from collectors.field import Unit
from engine.text import safe_text
from tui.sweep.isolation_rows import IsolationRow
from tui.text.format import MISSING_TEXT, format_quantity
from tui.text.glyphs import glyphs_of
from tui.text.safe import fit
from tui.widgets.row_table import RowTable, row_bindings
from tui.widgets.spans import Spans

_COLUMNS = (
    ("qd", "QD", 4, Unit.PER_SECOND),
    ("other", "its IOPS", 8, Unit.PER_SECOND),
    ("iops", "IOPS", 6, Unit.PER_SECOND),
    ("skipped", "skipped", 7, Unit.PER_SECOND),
    ("mean", "mean ms", 7, Unit.MILLISECONDS),
    ("p99", "p99 ms", 7, Unit.MILLISECONDS),
)
_FACTOR = ("factor", "iso p5", 6)
_LEFT_OUT_FIRST = ("skipped", "mean", "iops", "other")
_EDGE = 2
_LEAST_CAP = 10


class IsolationTable(RowTable[IsolationRow]):
    """The points in the order they were measured, or another one."""

    BINDINGS: ClassVar[list[BindingType]] = row_bindings("sweep")
    empty_text = "no points"

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._sort = ("", False)
        self._least = 0.0
        self._seconds = 0
        self._columns: list[tuple[str, str, int, Unit]] = []

    def show(self, rows: Sequence[IsolationRow], least: float, sort: tuple[str, bool]) -> None:
        """Take new rows in their order, and the isolation factor from which a point is isolated."""
        self._least, self._sort = least, sort
        self.put_rows(rows)

    def identity(self, row: IsolationRow) -> int:
        """Return the number of a point."""
        return row.number

    def lay_out_columns(self) -> None:
        """Leave out figures before the name of the cap is cut."""
        room, columns = self.area.width - _EDGE - self._name_width - 1 - _FACTOR[2], list(_COLUMNS)
        for name in _LEFT_OUT_FIRST:
            if sum(width + 1 for _, _, width, _ in columns) <= room:
                break
            columns = [column for column in columns if column[0] != name]
        self._columns = columns

    @property
    def _name_width(self) -> int:
        return max(_LEAST_CAP, *(len(_name(row)) for row in self._rows)) if self._rows else _LEAST_CAP

    def head_strip(self) -> Strip:
        """Draw the header."""
        titles = (*((name, title, width) for name, title, width, _ in self._columns), _FACTOR)
        cap = f"{' ' * _EDGE}{'cap':<{self._name_width}} "
        return self.strip([(cap, "head"), *self.title_spans(titles, self._sort), (" " * self.area.width, "head")])

    def row_strip(self, row: IsolationRow, above: IsolationRow | None, *, is_cursor: bool) -> Strip:  # noqa: ARG002 - each row says all
        """Draw a row."""
        glyphs = glyphs_of(self)
        style = "now" if row.is_now else "text"
        name = fit(safe_text(_name(row)), self._name_width, glyphs.ellipsis)
        spans: list[tuple[str, str]] = [
            ((glyphs.cursor if is_cursor else " ").ljust(_EDGE), "text"),
            (f"{name:<{self._name_width}} ", style),
        ]
        for key, _, width, unit in self._columns:
            value = row.figure(key)
            text = MISSING_TEXT if value is None else format_quantity(value, unit, width)
            if value is not None and unit is Unit.PER_SECOND and value < 10 ** (width - 1):
                text = f"{value:,.0f}"
            spans.append((f"{text.rjust(width)} ", style))
        spans += self._factor(row)
        note = f" now {len(row.point.seconds)} s" if row.is_now else ""
        spans.append((fit(note, max(self.area.width - sum(len(text) for text, _ in spans), 0)), "now"))
        return self.strip(spans, at_cursor=is_cursor)

    def _factor(self, row: IsolationRow) -> Spans:
        """Mark a point that is not isolated by more than its colour."""
        value, width = row.low_factor, _FACTOR[2]
        if value is None or row.point.aggressor is None:
            return [((MISSING_TEXT if value is None else f"{value:.2f}").rjust(width), "text")]
        is_isolated = value >= self._least
        return [(f"{'' if is_isolated else '!'}{value:.2f}".rjust(width), "curve" if is_isolated else "failed")]


def _name(row: IsolationRow) -> str:
    load = row.point.aggressor
    return "alone" if load is None else f"{row.point.cap.text} {load.block}"
