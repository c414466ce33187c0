"""The table widget: many thousand rows of figures; only visible ones are formatted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.message import Message

from collectors.model import FrameTable
from tui.text.columns import GridColumn, UnitStyle, in_units
from tui.textual_internals.screens import bound_here
from tui.widgets.grid.bindings import GRID_BINDINGS
from tui.widgets.grid.drawn_grid import DrawnGrid
from tui.widgets.grid.filtering import NO_TEXTS, RowTexts
from tui.widgets.grid.rows import NAME, Sorting

_RIGHT_BUTTON = 3


@dataclass
class GridMessage(Message):
    """Something happened in a grid."""

    grid: Grid

    @property
    def control(self) -> Grid:
        """The grid, for `@on` with a selector."""
        return self.grid


class Grid(DrawnGrid, can_focus=True, inherit_bindings=False):
    """A sorted, filtered view of one frame table, with a cursor that stays on its row (see RowView)."""

    BINDINGS: ClassVar[list[BindingType]] = list(GRID_BINDINGS)

    @dataclass
    class RowHighlighted(GridMessage):
        """The cursor moved to another row; only the last of several moves at once is reported."""

        key: str

        def can_replace(self, message: Message) -> bool:
            """Whether a pending message is out of date."""
            return isinstance(message, Grid.RowHighlighted) and message.grid is self.grid

    @dataclass
    class RowSelected(GridMessage):
        """A row was chosen with Enter or a double click."""

        key: str
        name: str

    @dataclass
    class FilterChanged(GridMessage):
        """The filter changed."""

        text: str

    class ColumnsWanted(GridMessage):
        """The operator wants to choose the columns."""

    @dataclass
    class ColumnHelpWanted(GridMessage):
        """The operator wants to know what a column means."""

        field_id: str

    class ChoicesChanged(GridMessage):
        """The operator changed the order, the units, or which rows are hidden or pinned."""

    def show(
        self, table: FrameTable | None, labels: Mapping[str, str] | None = None, texts: RowTexts = NO_TEXTS
    ) -> None:
        """Take new figures; repaints only lines whose text or style changed.

        `labels` gives names by key to show instead of the table's own, `texts` the fields for the filter that are no
        figures.
        """
        was_visible = self.is_visible_line(self._view.cursor, self._body_height)
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
        self._after_change(follow_cursor=self._view.pinned, moved_only=True)

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
        self._after_change(follow_cursor=found, moved_only=True)
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
        self._after_change(follow_cursor=True, moved_only=True)

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

    async def on_key(self, event: events.Key) -> None:
        """Edit the filter, where Escape clears an active one; otherwise do what the key is bound to here.

        Bindings would wait until the key has come up to the app, through the queues of screen and app: that costs as
        much as drawing the rows, and what is typed after the key of the filter would go astray.
        """
        drops = event.key == "escape" and bool(self._filter.text)
        if (self._filter.editing or drops) and self._filter.handle(event):
            event.stop()
            event.prevent_default()
            self.set_filter(self._filter.text)
        elif await self._run_bound(event.key):
            event.stop()
            event.prevent_default()

    async def _run_bound(self, key: str) -> bool:
        """Run the action that a key is bound to in the grid, by the key map in force; returns whether there is one."""
        for binding in bound_here(self, key):
            if await self.app.run_action(binding.action, self):
                return True
        return False

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
            self._after_change(follow_cursor=True, moved_only=True)
            if event.chain == 2:
                self.action_select()

    def on_resize(self) -> None:
        """Lay out again, with columns from the left in new room, and keep the cursor visible."""
        self.forget_lines()
        self._fill_from_left()
        self._after_change(follow_cursor=True)

    def on_blur(self) -> None:
        """Dim the cursor; a partly typed filter stays active."""
        if self._filter.editing:
            self._filter.editing = False
            self._view.rearrange()
            self._after_change(follow_cursor=True)
        super().on_blur()

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

    def _fill_from_left(self) -> None:
        """Scroll back as far as no column on the right is lost."""
        while self._first_column and not self._fitted().more_right:
            self._first_column -= 1
            if self._fitted().more_right:
                self._first_column += 1
                return

    def _sort_by_click(self, field_id: str | None) -> None:
        if field_id is not None:
            again = field_id == self.sorting.field_id
            self._choose_sort(Sorting(field_id, again and not self.sorting.reverse))

    def _after_change(self, *, follow_cursor: bool, moved_only: bool = False) -> None:
        """Update sizes, scroll position and screen from the view, and report a new row under the cursor.

        `moved_only`: rows or the cursor have other places, but each row is drawn as before.
        """
        if not moved_only:
            self._painter = None
        self.set_line_count(self.row_count + self._header_height)
        if follow_cursor:
            self.scroll_to_line(self._view.cursor, self._body_height)
        self.repaint()
        if self.cursor_key is not None and self.cursor_key != self._announced_key:
            self.post_message(self.RowHighlighted(self, self.cursor_key))
        self._announced_key = self.cursor_key
