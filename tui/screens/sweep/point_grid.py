"""The points of a study as a grid that grows while it is measured: figures, and what is said of each point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np
from msgspec import Struct

from collectors.field import Thresholds, Unit
from collectors.filtering.expression import Mask
from collectors.model import FrameTable, Tier
from collectors.registry import subject_of
from collectors.tables.study.subjects import MeasuredPoint, table_of
from engine.replacing import replace
from engine.text import safe_text
from tui.text.columns import GridColumn, default_columns
from tui.widgets.grid.lines import GridLayout
from tui.widgets.grid.rows import NAME, FlatArrangement, Order, RowNames, RowOrder, Sorting, order_rows
from tui.widgets.grid.table import Grid

WORDS = "words"
_LEAST_WORDS = 16
"""Cells for what is said of a point."""
_MARKS = 2
"""Cells of a column beside its text."""
_SAID = Thresholds(1.0, 2.0)
"""Ranks from which words are coloured: what is measured now, and what failed."""


class SaidRow(MeasuredPoint, Protocol):
    """A point with what is said of it."""

    @property
    def words(self) -> str:
        """What became of the point."""

    @property
    def rank(self) -> float:
        """0, 1 for what is being measured, 2 for what failed."""

    @property
    def marks(self) -> str:
        """What is marked of it, before its name."""

    def cell(self, field_id: str) -> tuple[str, float] | None:
        """Text of a cell with its order; None shows the figure."""


Row = TypeVar("Row", bound=SaidRow)


class SaidColumn(Struct, frozen=True):
    """A column of texts."""

    id: str
    title: str
    width: int


class _PointArrangement(FlatArrangement, Generic[Row]):
    """Points in the order they come, with their marks and texts."""

    def __init__(self) -> None:
        self.rows: Sequence[Row] = ()

    def take(self, rows: Sequence[Row]) -> None:
        self.rows, self.prefix_width = rows, max((len(row.marks) for row in rows), default=0)

    def order(self, table: FrameTable, names: RowNames, sorting: Sorting, found: Mask | None) -> Order:
        if sorting.field_id != NAME:
            return order_rows(table, names, sorting, found)
        rows = np.arange(len(table.rows)) if found is None else np.flatnonzero(found)
        return RowOrder(rows, -rows.astype(np.float64) if sorting.descending else rows.astype(np.float64))

    def prefix(self, row: int) -> str:
        return self.rows[row].marks.ljust(self.prefix_width)

    def cell_text(self, field_id: str, row: int) -> str | None:
        if field_id == WORDS:
            return safe_text(self.rows[row].words)
        found = self.rows[row].cell(field_id)
        return None if found is None else found[0]


class PointGrid(Grid, Generic[Row]):
    """Points in the order they come until another one is chosen; the columns of texts cannot be left out."""

    def __init__(self, table: str, *, name_title: str, texts_at: int = 0, id: str) -> None:  # noqa: A002 - Textual's name
        """`texts_at` says behind how many figures the columns of texts come."""
        self._points: _PointArrangement[Row] = _PointArrangement()
        self._texts: Sequence[SaidColumn] = ()
        self._texts_at = texts_at
        super().__init__(
            table, default_columns(table), name_title=name_title, name_part=2, arrangement=self._points, id=id
        )
        self.empty_text = "no points"

    def show_points(self, rows: Sequence[Row], texts: Sequence[SaidColumn] = ()) -> None:
        """Take new rows in their order, and the columns of texts."""
        self._points.take(rows)
        self._texts = texts
        table = table_of(subject_of(self.table_name), rows)
        said: dict[str, list[float]] = {WORDS: [row.rank for row in rows]}
        for column in texts:
            said[column.id] = [np.nan if (cell := row.cell(column.id)) is None else cell[1] for row in rows]
        columns: Mapping[str, list[float]] = said
        self.show(FrameTable(table.rows, {**table.columns, **{key: np.array(each) for key, each in columns.items()}}))

    @property
    def row(self) -> Row | None:
        """The point under the cursor; None without points."""
        return next((row for row in self._points.rows if row.key == self.cursor_key), None)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's signature
        """Leave Enter to the screen, which sets the knobs of a point."""
        return action != "select"

    @property
    def _drawn_columns(self) -> Sequence[GridColumn]:
        figures = list(super()._drawn_columns)
        texts = [_text_column(column.id, column.title, column.width) for column in self._texts]
        figures[self._texts_at : self._texts_at] = texts
        return figures

    def _fitted(self) -> GridLayout:
        """Give the words what is left over; they are shown in any case."""
        layout = self._laid_out(self._drawn_columns, self.area.width - _LEAST_WORDS)
        words = _text_column(WORDS, "", max(layout.rest + _LEAST_WORDS - _MARKS - 1, 0))
        return replace(layout, width=self.area.width, columns=(*layout.columns, words), rest=1)


def _text_column(field_id: str, title: str, width: int) -> GridColumn:
    hot = _SAID if field_id == WORDS else None
    return GridColumn(field_id, title, width, lambda _value: "", Unit.COUNT, Tier.EXACT, "left", hot, as_text=True)
