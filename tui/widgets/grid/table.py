"""The table widget: many thousand rows of figures, of which only visible ones are formatted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from collectors.model import FrameTable
from tui.text.columns import GridColumn, UnitStyle, in_units
from tui.text.glyphs import glyphs_of
from tui.widgets.grid.filtering import NO_TEXTS, GridFilter, RowTexts
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
from tui.widgets.grid.offered import active_of, filter_fields, offered_columns
from tui.widgets.grid.row_view import RowView
from tui.widgets.grid.rows import FLAT, NAME, Arrangement, Sorting
from tui.widgets.painted import Paged

_PARTS = ("name", "exact", "sampled", "kernel", "warm", "hot", "header", "header-sort", "filter", "empty", "trend")
_UNITS_FROM_HEIGHT = 4
"""Height from which one line shows units."""
_FILTER_FROM_HEIGHT = 3
"""Height from which the filter has a line of its own; below, it takes that of the titles."""


_RIGHT_BUTTON = 3

PALETTE_IDS = frozenset(
    {
        "filter",
        "sort-previous",
        "sort-next",
        "sort-reverse",
        "rows-idle",
        "row-pin",
        "columns-choose",
        "columns-explain",
        "columns-units",
    }
)
"""Bindings of a focused grid that the palette offers: all but the movements."""


class Grid(Paged, can_focus=True, inherit_bindings=False):
    """A sorted, filtered view of one frame table, with a cursor that stays on its row (see RowView)."""

    DEFAULT_CSS = """
    Grid {
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-size-vertical: 1;
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"grid--{part}" for part in (*_PARTS, "cursor")}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Row up", show=False, id="row-up"),
        Binding("down,j", "move(1)", "Row down", show=False, id="row-down"),
        Binding("pageup", "page(-1)", "Page up", show=False, id="page-up"),
        Binding("pagedown", "page(1)", "Page down", show=False, id="page-down"),
        Binding("home", "first", "Follow the first row", show=False, id="row-first"),
        Binding("end", "last", "Last row", show=False, id="row-last"),
        Binding("left", "columns(-1)", "Columns left", show=False, id="columns-left"),
        Binding("right", "columns(1)", "Columns right", show=False, id="columns-right"),
        Binding("enter", "select", "Open", show=False, id="row-select"),
        Binding("less_than_sign", "sort(-1)", "Sort by the previous column", show=False, id="sort-previous"),
        Binding("greater_than_sign", "sort(1)", "Sort by the next column", show=False, id="sort-next"),
        Binding("I", "sort_reverse", "Reverse the order", show=False, id="sort-reverse"),
        Binding("slash", "filter", "Filter by words and figures: nvme busy>50", show=False, id="filter"),
        Binding("H", "idle", "Hide rows without I/O, or show them", show=False, id="rows-idle"),
        Binding("K", "pin", "Keep the row at the top, or no longer", show=False, id="row-pin"),
        Binding("V", "choose_columns", "Choose and order the columns", show=False, id="columns-choose"),
        Binding("E", "explain", "What the columns mean: unit, source, thresholds", show=False, id="columns-explain"),
        Binding("u", "units", "Units: K of 1024, k of 1000, or microseconds (250u)", show=False, id="columns-units"),
    ]

    @dataclass
    class RowHighlighted(Message):
        """The cursor moved to another row; of moves that follow each other at once only the last is reported."""

        grid: Grid
        key: str

        def can_replace(self, message: Message) -> bool:
            """Whether a pending message is out of date."""
            return isinstance(message, Grid.RowHighlighted) and message.grid is self.grid

        @property
        def control(self) -> Grid:
            """The grid, for `@on` with a selector."""
            return self.grid

    @dataclass
    class RowSelected(Message):
        """A row was chosen with Enter or a double click."""

        grid: Grid
        key: str
        name: str

        @property
        def control(self) -> Grid:
            """The grid, for `@on` with a selector."""
            return self.grid

    @dataclass
    class FilterChanged(Message):
        """The filter changed."""

        grid: Grid
        text: str

        @property
        def control(self) -> Grid:
            """The grid, for `@on` with a selector."""
            return self.grid

    @dataclass
    class ColumnsWanted(Message):
        """The operator wants to choose the columns."""

        grid: Grid

        @property
        def control(self) -> Grid:
            """The grid, for `@on` with a selector."""
            return self.grid

    @dataclass
    class ColumnHelpWanted(Message):
        """The operator wants to know what a column means."""

        grid: Grid
        field_id: str

        @property
        def control(self) -> Grid:
            """The grid, for `@on` with a selector."""
            return self.grid

    @dataclass
    class ChoicesChanged(Message):
        """The operator changed the order, the units, or which rows are hidden or pinned."""

        grid: Grid

        @property
        def control(self) -> Grid:
            """The grid, for `@on` with a selector."""
            return self.grid

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
        self.waiting = "waiting for the first sample"
        """Text shown without a table."""
        """Text shown without rows, unless a filter is the cause."""
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

    def show(
        self, table: FrameTable | None, labels: Mapping[str, str] | None = None, texts: RowTexts = NO_TEXTS
    ) -> None:
        """Take new figures; repaints only lines whose text or style changed.

        `labels` gives names by key to show instead of the table's own, `texts` the fields for the filter that are no
        figures.
        """
        was_visible = self._cursor_is_visible()
        self._view.show(table, labels, texts)
        self._after_change(follow_cursor=self._view.pinned and was_visible)

    def rearrange(self) -> None:
        """Reorder the rows because the arrangement changed: a branch was opened, or other rows are wanted."""
        self._view.rearrange()
        self._after_change(follow_cursor=True)

    def set_name_title(self, title: str) -> None:
        """Set the title of the name column."""
        self._name_title = title

    def set_sort(self, field_id: str, reverse: bool = False) -> None:
        """Order by a field, or by "name"; figures descend and names ascend unless reversed."""
        self._view.sort(Sorting(field_id, reverse))
        self._after_change(follow_cursor=self._view.pinned)

    def set_columns(self, columns: Sequence[GridColumn]) -> None:
        """Show these columns; at least one of them is needed."""
        self._chosen = tuple(columns) or self.default_columns
        self._columns = tuple(in_units(column, self._unit_style) for column in self._chosen)
        self._first_column = 0
        self.repaint()

    def set_units(self, style: UnitStyle) -> None:
        """Show the figures in these units."""
        self._unit_style = style
        self._columns = tuple(in_units(column, style) for column in self._chosen)
        self.repaint()

    def hide_idle(self, hidden: bool) -> None:
        """Hide rows without I/O, or show them."""
        self._view.hide_idle(hidden)
        self._after_change(follow_cursor=True)

    def pin_rows(self, keys: Sequence[str]) -> None:
        """Keep these rows at the top, in this order, and no others."""
        self._view.top_keys = tuple(keys)
        self._view.rearrange()
        self._after_change(follow_cursor=self._view.pinned)

    def set_filter(self, text: str) -> None:
        """Show only rows that match a filter (collectors.filtering.parse); empty shows all."""
        self._view.filter(text)
        self._after_change(follow_cursor=True)
        self.post_message(self.FilterChanged(self, text))

    def move_to_key(self, key: str) -> bool:
        """Move the cursor to the row of a key; false if no shown row has it."""
        found = self._view.move_to_key(key)
        self._after_change(follow_cursor=found)
        return found

    def action_move(self, rows: int) -> None:
        """Move the cursor by rows."""
        self._view.move(self._view.cursor + rows)
        self._after_change(follow_cursor=True, moved_only=True)

    def action_page(self, pages: int) -> None:
        """Move the cursor by pages."""
        self.action_move(pages * max(1, self._body_height - 1))

    def action_first(self) -> None:
        """Move the cursor to the first row, whichever row that becomes."""
        self._view.follow_first()
        self._after_change(follow_cursor=True)

    def action_last(self) -> None:
        """Move the cursor to the last row."""
        self.action_move(self.row_count)

    def action_columns(self, step: int) -> None:
        """Scroll by whole columns; the name stays."""
        if step > 0 and not self._fitted().more_right:
            return
        self._first_column = max(0, min(self._first_column + step, len(self._columns) - 1))
        self.repaint()

    def action_select(self) -> None:
        """Select the row under the cursor."""
        if self.cursor_key is not None:
            self.post_message(self.RowSelected(self, self.cursor_key, self._view.name_at(self._view.cursor)))

    def action_sort(self, step: int) -> None:
        """Order by the next or previous column."""
        fields = [NAME, *(column.field_id for column in self._columns if not column.trend_of)]
        current = self.sorting.field_id
        position = fields.index(current) + step if current in fields else 0
        self._choose_sort(Sorting(fields[position % len(fields)]))

    def action_sort_reverse(self) -> None:
        """Reverse the order."""
        self._choose_sort(Sorting(self.sorting.field_id, not self.sorting.reverse))

    def action_filter(self) -> None:
        """Type a filter: Enter keeps it, Escape drops it."""
        self._filter.editing = True
        self._after_change(follow_cursor=True)

    def action_idle(self) -> None:
        """Hide rows without I/O, or show them."""
        self.hide_idle(not self.idle_hidden)
        self.post_message(self.ChoicesChanged(self))

    def action_pin(self) -> None:
        """Keep the row under the cursor at the top, or no longer."""
        if self.cursor_key is not None:
            self._view.pinned = True
            self._view.pin(self.cursor_key)
            self._after_change(follow_cursor=True)
            self.post_message(self.ChoicesChanged(self))

    def action_choose_columns(self) -> None:
        """Ask for the dialog of columns."""
        self.post_message(self.ColumnsWanted(self))

    def action_explain(self) -> None:
        """Ask for the meaning of the column that sorts, or of the first one."""
        fields = [column.field_id for column in self.columns]
        current = self.sorting.field_id
        self.post_message(self.ColumnHelpWanted(self, current if current in fields else fields[0]))

    def action_units(self) -> None:
        """Take the next units of the figures."""
        styles = tuple(UnitStyle)
        self.set_units(styles[(styles.index(self._unit_style) + 1) % len(styles)])
        self.notify(f"units: {self._unit_style}", timeout=2, markup=False)
        self.post_message(self.ChoicesChanged(self))

    def check_consume_key(self, key: str, character: str | None) -> bool:  # noqa: ARG002 - Textual's signature
        """While the filter is edited, it takes printable keys."""
        return self._filter.editing and character is not None and character.isprintable()

    def on_key(self, event: events.Key) -> None:
        """Edit the filter; Escape clears an active one."""
        if event.key == "slash" and not self._filter.editing:
            # The binding would wait until the key has come up to the app, and what is typed meanwhile would go astray.
            event.stop()
            self.action_filter()
            return
        drops = event.key == "escape" and bool(self._filter.text)
        if (self._filter.editing or drops) and self._filter.handle(event):
            event.stop()
            event.prevent_default()
            self.set_filter(self._filter.text)

    def on_paste(self, event: events.Paste) -> None:
        """Paste into the filter while it is edited."""
        if self._filter.editing:
            event.stop()
            self._filter.add(event.text)
            self.set_filter(self._filter.text)

    def on_click(self, event: events.Click) -> None:
        """Filter: edit it. Title: sort, again to reverse; right button: explain. Row: move there, twice: select."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        if self._has_filter_line and offset.y == 0:
            self.action_filter()
            return
        if offset.y < self._header_height:
            field_id = self._fitted().field_at(offset.x)
            if event.button != _RIGHT_BUTTON:
                trend_of = {column.field_id: column.trend_of for column in self._columns if column.trend_of}
                self._sort_by_click(None if field_id is None else trend_of.get(field_id, field_id))
            elif field_id is not None and field_id != NAME:
                self.post_message(self.ColumnHelpWanted(self, field_id))
            return
        position = offset.y - self._header_height + self.scroll_offset.y
        if position < self.row_count:
            self._view.move(position)
            self._after_change(follow_cursor=True)
            if event.chain == 2:
                self.action_select()

    def on_resize(self) -> None:
        """Lay out again and keep the cursor visible."""
        self.forget_lines()
        self._after_change(follow_cursor=True)

    def on_blur(self) -> None:
        """Dim the cursor; a partly typed filter stays active."""
        if self._filter.editing:
            self._filter.editing = False
            self._view.rearrange()
            self._after_change(follow_cursor=True)
        super().on_blur()

    @property
    def _has_filter_line(self) -> bool:
        return bool(self._filter.text) or self._filter.editing or self._view.idle_hidden

    @property
    def _header_height(self) -> int:
        own_line = self._has_filter_line and self.area.height >= _FILTER_FROM_HEIGHT
        return (2 if self.area.height >= _UNITS_FROM_HEIGHT else 1) + own_line

    @property
    def _body_height(self) -> int:
        return max(0, self.area.height - self._header_height)

    def _fitted(self) -> GridLayout:
        widest = 0 if self._view.names is None else self._view.names.widest + self._view.arrangement.prefix_width
        name_width = max(widest, len(self._name_title) + 2)
        columns = [column for column in self._columns if not column.trend_of or self._has_trends]
        return with_wide_trend(lay_out(columns, self.area.width, name_width, self._first_column, self._name_part))

    @property
    def _has_trends(self) -> bool:
        """Whether histories are drawn: they change more often than all else."""
        return self.trends is not None and not self.screen.has_class("-lite")

    def choose_sort(self, field_id: str) -> None:
        """Order by a column as if its title were clicked, the largest first."""
        self._choose_sort(Sorting(field_id))

    def _choose_sort(self, sorting: Sorting) -> None:
        self._bring_into_view(sorting.field_id)
        self.set_sort(sorting.field_id, sorting.reverse)
        self.post_message(self.ChoicesChanged(self))

    def _bring_into_view(self, field_id: str) -> None:
        """Scroll by columns until the one that sorts is shown."""
        fields = [column.field_id for column in self._columns]
        if field_id not in fields:
            return
        position = fields.index(field_id)
        self._first_column = min(self._first_column, position)
        while position >= self._first_column + max(1, len(self._fitted().columns)):
            self._first_column += 1

    def _sort_by_click(self, field_id: str | None) -> None:
        if field_id is not None:
            again = field_id == self.sorting.field_id
            self._choose_sort(Sorting(field_id, again and not self.sorting.reverse))

    def _cursor_is_visible(self) -> bool:
        top = self.scroll_offset.y
        return top <= self._view.cursor < top + self._body_height

    def _after_change(self, *, follow_cursor: bool, moved_only: bool = False) -> None:
        """Update sizes, scroll position and screen from the view, and report a new row under the cursor."""
        if not moved_only:
            self._painter = None
        height = self.row_count + self._header_height
        if self.virtual_size.height != height:
            self.virtual_size = Size(0, height)
        if follow_cursor and not self._cursor_is_visible():
            top = self.scroll_offset.y
            below = self._view.cursor - self._body_height + 1
            self.scroll_to(y=self._view.cursor if self._view.cursor < top else below, animate=False, force=True)
        self.repaint()
        if self.cursor_key is not None and self.cursor_key != self._announced_key:
            self.post_message(self.RowHighlighted(self, self.cursor_key))
        self._announced_key = self.cursor_key

    def draw_lines(self) -> list[Strip]:
        """Draw all lines from top to bottom."""
        layout, style, view = self._fitted(), self._cached_style(), self._view
        lines = self._head_lines(layout, style)
        if view.table is None or view.names is None or not self.row_count:
            lines.append(text_line(self._empty_line(), "empty", layout, style))
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
        if self.area.height >= _UNITS_FROM_HEIGHT:
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

    def _empty_line(self) -> str:
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
