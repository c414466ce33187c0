"""The points of a sweep as a table that grows while it is measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from msgspec import Struct
from textual.binding import BindingType
from textual.strip import Strip

from collectors.field import Unit
from engine.sweep.points import Point
from engine.text import safe_text
from tui.sweep.rows import PointRow, PointState
from tui.text.format import MISSING_TEXT, format_quantity
from tui.text.glyphs import glyphs_of
from tui.text.safe import fit
from tui.widgets.row_table import RowTable, row_bindings
from tui.widgets.spans import Spans


class _Column(Struct, frozen=True):
    figure: str
    title: str
    width: int
    unit: Unit
    need: int
    """The larger, the sooner it is left out where there is no room."""


_COLUMNS = (
    _Column("iops", "IOPS", 5, Unit.PER_SECOND, 0),
    _Column("bytes", "B/s", 5, Unit.BYTES_PER_SECOND, 1),
    _Column("mean", "mean ms", 7, Unit.MILLISECONDS, 0),
    _Column("p50", "p50", 6, Unit.MILLISECONDS, 3),
    _Column("p99", "p99", 6, Unit.MILLISECONDS, 0),
    _Column("p99.9", "p99.9", 6, Unit.MILLISECONDS, 0),
    _Column("outstanding", "outst", 5, Unit.COUNT, 2),
    _Column("little", "Lit%", 5, Unit.PERCENT, 0),
    _Column("noise", "+-%", 4, Unit.PERCENT, 0),
    _Column("count", "n", 2, Unit.COUNT, 4),
)
_LEAST_WORDS = 5
_WHOLE_FROM = 99.0
"""Percentages from which the decimal is left out."""
_NAME_PART = 12
"""The name of an axis takes at most this part of the width; its values are never cut."""
_EDGE = 6
"""Cells before the values: cursor, interval, three marks, and a gap."""


class SweepTable(RowTable[PointRow]):
    """The points of a sweep."""

    BINDINGS: ClassVar[list[BindingType]] = row_bindings("sweep")
    empty_text = "no points"

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._axes: tuple[str, ...] = ()
        self._sort = ("", False)
        self._columns: list[_Column] = []
        self._widths: list[int] = []
        """Widths of the values of each axis."""

    def show(self, rows: Sequence[PointRow], axes: tuple[str, ...], sort: tuple[str, bool]) -> None:
        """Take new rows in their order; `sort` is what they are sorted by, and whether descending."""
        self._axes, self._sort = axes, sort
        self.put_rows(rows)

    def identity(self, row: PointRow) -> Point:
        """Return the point of a row."""
        return row.point

    # ------------------------------------------------------------------ drawing

    def lay_out_columns(self) -> None:
        """Choose the columns that fit beside the values of the axes."""
        self._widths = self._value_widths()
        self._columns = self._fitting()

    def head_strip(self) -> Strip:
        """Draw the header."""
        return self.strip(self._head(self._columns))

    def row_strip(self, row: PointRow, above: PointRow | None, *, is_cursor: bool) -> Strip:  # noqa: ARG002 - each row says all
        """Draw a row."""
        return self.strip(self._line(row, self._columns, is_cursor=is_cursor), at_cursor=is_cursor)

    def _fitting(self) -> list[_Column]:
        room = self.area.width - _EDGE - sum(width + 1 for width in self._widths) - _LEAST_WORDS
        columns = list(_COLUMNS)
        while columns and sum(column.width + 1 for column in columns) > room:
            least = max(columns, key=lambda column: column.need)
            if not least.need:
                break
            columns.remove(least)
        return columns

    def _value_widths(self) -> list[int]:
        values, most = zip(*(row.values for row in self._rows), strict=True), self.area.width // _NAME_PART
        names = zip(self._axes, values, strict=True)
        return [max(min(len(name), most), *(len(value) for value in column)) for name, column in names]

    def _head(self, columns: Sequence[_Column]) -> Spans:
        key, descending = self._sort
        glyphs = glyphs_of(self)
        arrow = glyphs.descending if descending else glyphs.ascending
        by_point = key == "point"
        spans = [((arrow if by_point else " ").ljust(_EDGE), "sorted")]
        for name, width in zip(self._axes, self._widths, strict=True):
            spans.append(
                (f"{fit(name, width, glyphs.ellipsis).strip().rjust(width)} ", "sorted" if by_point else "head")
            )
        for column in columns:
            is_sorted = column.figure == key
            title = f"{arrow}{column.title}"[-column.width :] if is_sorted else column.title
            spans.append((f"{title.rjust(column.width)} ", "sorted" if is_sorted else "head"))
        return [*spans, (" " * self.area.width, "head")]

    def _line(self, row: PointRow, columns: Sequence[_Column], *, is_cursor: bool) -> Spans:
        glyphs = glyphs_of(self)
        is_waiting = row.state in (PointState.WAITING, PointState.SKIPPED)
        style = "muted" if is_waiting else "failed" if row.state is PointState.FAILED else "text"
        spans = [
            (glyphs.cursor if is_cursor else " ", "text"),
            (glyphs.vertical if row.is_in_interval else " ", "mark"),
            (row.marks.ljust(_EDGE - 2), "mark"),
        ]
        for value, width in zip(row.values, self._widths, strict=True):
            spans.append((f"{value.rjust(width)} ", style))
        if row.summary is not None:
            spans += [(f"{_figure(row, column).rjust(column.width)} ", style) for column in columns]
        room = self.area.width - sum(len(text) for text, _ in spans)
        words_style = "now" if row.state is PointState.MEASURING else "failed" if row.words else style
        spans.append((fit(safe_text(row.words), max(room, 0), glyphs.ellipsis), style if is_waiting else words_style))
        return spans


def _figure(row: PointRow, column: _Column) -> str:
    value = row.figure(column.figure)
    if value is not None and column.figure == "little":
        return f"{round(value, 1) + 0.0:+.1f}" if abs(value) < _WHOLE_FROM else f"{value:+.0f}"
    return MISSING_TEXT if value is None else format_quantity(value, column.unit, column.width)
