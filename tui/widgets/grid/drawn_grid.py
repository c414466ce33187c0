"""What a grid shows and how it is drawn: columns that fit, lines above the rows, and the rows in sight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.strip import Strip

from collectors.filtering.fields import FilterField, figures_of
from collectors.model import FrameTable
from collectors.registry import TABLES, fields_of, subject_of
from collectors.subject import Active, any_above
from tui.text.columns import GridColumn, UnitStyle, grid_columns
from tui.text.glyphs import glyphs_of
from tui.widgets.grid.filtering import GridFilter
from tui.widgets.grid.lines import (
    GridLayout,
    GridStyle,
    RowPainter,
    TrendSource,
    filter_line,
    header_line,
    lay_out,
    text_line,
    unit_line,
    with_wide_trend,
)
from tui.widgets.grid.row_view import RowView
from tui.widgets.grid.rows import FLAT, NAME, Arrangement, Sorting
from tui.widgets.painted import Paged

_PARTS = ("name", "exact", "sampled", "kernel", "warm", "hot", "header", "header-sort", "filter", "empty", "trend")
_UNITS_FROM_HEIGHT = 3
"""Height from which one line shows units; the line of a filter comes on top."""
_FILTER_FROM_HEIGHT = 3
"""Height from which the filter has a line of its own; below, it takes that of the titles."""


class DrawnGrid(Paged):
    """Draws the visible rows of a RowView; it takes no keys."""

    DEFAULT_CSS = """
    DrawnGrid {
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-size-vertical: 1;
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"grid--{part}" for part in (*_PARTS, "cursor")}

    def __init__(
        self,
        table: str,
        columns: Sequence[GridColumn],
        *,
        sort: str = NAME,
        name_title: str = "Name",
        name_part: int = 3,
        arrangement: Arrangement = FLAT,
        id: str | None = None,  # noqa: A002 - Textual's name for it
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.table_name = table
        self.default_columns = tuple(columns)
        self.default_sort = sort
        self.offered = offered_columns(table, columns)
        self._chosen = self._columns = self.default_columns
        self._unit_style = UnitStyle.BINARY
        self._name_title = name_title
        self._name_part = name_part
        self.empty_text = "nothing here"
        """Text shown without rows, unless a filter is the cause."""
        self.waiting = "waiting for the first sample"
        """Text shown without a table."""
        self._filter = GridFilter(filter_fields(table, columns))
        self.trends: TrendSource | None = None
        """Histories for the column that draws them."""
        self._view = RowView(Sorting(sort), arrangement, self._filter, active_of(table))
        self._first_column = 0
        self._announced_key: str | None = None
        self._style_cache: GridStyle | None = None
        self._painter: RowPainter | None = None
        """Kept while nothing but the cursor moves."""

    @property
    def cursor_key(self) -> str | None:
        """Key of the row under the cursor; None without rows."""
        return self._view.cursor_key

    @property
    def sorting(self) -> Sorting:
        """The order in force."""
        return self._view.sorting

    @property
    def unit_style(self) -> UnitStyle:
        """The units of the figures."""
        return self._unit_style

    @property
    def idle_hidden(self) -> bool:
        """Whether rows without I/O are hidden."""
        return self._view.idle_hidden

    @property
    def pinned_keys(self) -> tuple[str, ...]:
        """Keys of the rows kept at the top, the first pinned first."""
        return self._view.top_keys

    @property
    def table(self) -> FrameTable | None:
        """The figures of all rows, shown or not; None before the first sample."""
        return self._view.table

    @property
    def filter_text(self) -> str:
        """The filter as typed; empty if none."""
        return self._filter.text

    @property
    def columns(self) -> tuple[GridColumn, ...]:
        """The columns, in order."""
        return self._chosen

    @property
    def row_count(self) -> int:
        """Rows that are shown."""
        return len(self._view.order)

    def draw_lines(self) -> list[Strip]:
        """Draw all lines from top to bottom."""
        layout, style, view = self._fitted(), self._cached_style(), self._view
        lines = self._head_lines(layout, style) if self._header_height else []
        if view.table is None or view.names is None or not self.row_count:
            lines.append(text_line(self.empty_line, "empty", layout, style))
        else:
            top = self.scroll_offset.y
            rows = view.order.window(top, self._body_height)
            if self._painter is None or not self._painter.draws(layout, style):
                self._painter = RowPainter(layout, style, view.arrangement, view.top_keys, self.trends)
            lines += self._painter.paint(view.table, view.names, rows, view.cursor - top)
        blank = Strip.blank(layout.width, style.plain["exact"])
        return (lines + [blank] * self.area.height)[: self.area.height]

    def _head_lines(self, layout: GridLayout, style: GridStyle) -> list[Strip]:
        """Draw the filter, the titles and the units, as far as there is room for each."""
        lines = [header_line(layout, self.sorting, self._name_title, style)]
        if self._has_units:
            lines.append(unit_line(layout, style))
        if self._has_filter_line:
            has_room = self.area.height >= _FILTER_FROM_HEIGHT
            line = filter_line(self._filter, self._count_text(), layout, style)
            return [line, *lines] if has_room else [line]
        return lines

    def _count_text(self) -> str:
        """How many rows match, of how many."""
        total = 0 if self._view.table is None else len(self._view.table.rows)
        shown = total if self._view.matched is None else self._view.matched
        idle = ", idle rows hidden" if self._view.idle_hidden else ""
        return f"{shown:,} of {total:,}{idle}"

    @property
    def empty_line(self) -> str:
        """Why no row is shown."""
        if self._view.table is None:
            return self.waiting
        if self._filter.text and len(self._view.table.rows):
            return f"no row matches {self._filter.text!r}; Escape drops the filter"
        if self._view.idle_hidden and len(self._view.table.rows):
            return "no row has I/O; H shows idle rows"
        return self.empty_text

    def invalidate_style(self) -> None:
        """Clear cached styles: theme or focus changed."""
        self._style_cache = None

    def _cached_style(self) -> GridStyle:
        """Styles and marks, looked up once per theme and focus."""
        if self._style_cache is None:
            cursor = self.get_component_rich_style("grid--cursor", partial=True)
            plain = {part: self.get_component_rich_style(f"grid--{part}") for part in _PARTS}
            under_cursor = {part: style + cursor for part, style in plain.items()}
            self._style_cache = GridStyle(glyphs_of(self), plain, under_cursor)
        return self._style_cache

    @property
    def _has_filter_line(self) -> bool:
        return bool(self._filter.text) or self._filter.editing or self._view.idle_hidden

    @property
    def _has_units(self) -> bool:
        return self.area.height >= _UNITS_FROM_HEIGHT + self._has_filter_line

    @property
    def _header_height(self) -> int:
        if self.area.height <= 1 and not self._has_filter_line:
            return 0
        own_line = self._has_filter_line and self.area.height >= _FILTER_FROM_HEIGHT
        return (2 if self._has_units else 1) + own_line

    @property
    def _body_height(self) -> int:
        return max(0, self.area.height - self._header_height)

    def _fitted(self) -> GridLayout:
        return with_wide_trend(self._laid_out(self._drawn_columns, self.area.width))

    def _laid_out(self, columns: Sequence[GridColumn], width: int) -> GridLayout:
        widest = 0 if self._view.names is None else self._view.names.widest + self._view.arrangement.prefix_width
        name_width = max(widest, len(self._name_title) + 2)
        return lay_out(columns, width, name_width, self._first_column, self._name_part)

    @property
    def _drawn_columns(self) -> Sequence[GridColumn]:
        """The columns that have something to draw."""
        return [column for column in self._columns if not column.trend_of or self._has_trends]

    @property
    def _has_trends(self) -> bool:
        """Whether histories are drawn: they change more often than all else."""
        return self.trends is not None and not self.screen.has_class("-lite")


_DID_IO = any_above("iops", "in_flight")


def offered_columns(table: str, columns: Sequence[GridColumn]) -> tuple[GridColumn, ...]:
    """Columns that can be chosen: those given, then all other fields of the table."""
    shown = {column.field_id for column in columns}
    rest = [field.id for field in fields_of(table) if field.id not in shown]
    return (*columns, *grid_columns(table, rest))


def filter_fields(table: str, columns: Sequence[GridColumn]) -> tuple[FilterField, ...]:
    """Figures that a filter can compare: those of the columns, then all other fields of the table."""
    # A column of texts without a unit has ranks in place of figures.
    shown = [column for column in columns if not column.trend_of and (column.unit or not column.as_text)]
    return (
        *(FilterField(column.field_id, column.title, column.unit) for column in shown),
        *figures_of(fields_of(table)),
    )


def active_of(table: str) -> Active:
    """Return the filter of rows that are not idle."""
    return subject_of(table).active if table in TABLES else _DID_IO
