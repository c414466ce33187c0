"""What the columns of a table mean: one at a time, from the sorted one on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from collectors.field import Field
from collectors.model import Tier
from collectors.registry import fields_of
from engine.text import safe_text
from tui.screens.help.sections import TIER_TEXTS
from tui.text.columns import TREND_HELP, GridColumn
from tui.textual_internals.laid_out import Modal
from tui.widgets.grid.table import Grid
from tui.widgets.line import TextLine

OF_SCREENS = {
    "state": "State of the path as the kernel, the array and multipathd report it; of a group the worst of its paths.",
    "verdict": "What is wrong with the path compared with its peers, in words.",
}
"""Columns that are no figures."""
_OTHER_TABLES = ("paths", "hbas")
_LABEL = 10


def field_of(table: str, field_id: str) -> Field | None:
    """Find the field of a column in its table, or in those whose figures a tree or a group shows."""
    tables = (table, *_OTHER_TABLES)
    return next((field for name in tables for field in fields_of(name) if field.id == field_id), None)


class ColumnHelp(Modal[None]):
    """Title, unit, id, meaning, tier, thresholds and source of a column; the arrows go on to the others."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,E", "dismiss(None)", "Close", show=False),
        Binding("right,down", "go(1)", "Next column", show=False, priority=True),
        Binding("left,up", "go(-1)", "Column before", show=False, priority=True),
        Binding("enter", "sort", "Sort by it", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    ColumnHelp { align: center middle; }
    ColumnHelp VerticalScroll {
        width: 76; max-width: 100%; height: auto; max-height: 100%;
        border: round $accent; padding: 0 1; background: $surface;
    }
    ColumnHelp Static { height: auto; }
    """

    def __init__(self, grid: Grid, field_id: str) -> None:
        super().__init__()
        self._grid = grid
        self._position = [column.field_id for column in grid.columns].index(field_id)

    def compose(self) -> ComposeResult:
        """Text and keys."""
        with VerticalScroll() as box:
            box.border_title = "What the columns mean"
            yield Static(markup=False)
            yield TextLine("Left Right: other columns   Enter: sort by it   Esc: close")

    def on_mount(self) -> None:
        """Show the first one."""
        self._show()

    def action_go(self, step: int) -> None:
        """Show the next column, or the one before."""
        self._position = (self._position + step) % len(self._grid.columns)
        self._show()

    def action_sort(self) -> None:
        """Order the table by this column, the largest first."""
        self._grid.choose_sort(self._column.trend_of or self._column.field_id)
        self.dismiss(None)

    @property
    def _column(self) -> GridColumn:
        return self._grid.columns[self._position]

    def _show(self) -> None:
        number = f"column {self._position + 1} of {len(self._grid.columns)}"
        lines = [*column_lines(self._grid, self._column), Content(""), Content.styled(number, "dim")]
        self.query_one(Static).update(Content("\n").join(lines))


def column_lines(grid: Grid, column: GridColumn) -> Iterator[Content]:
    """Describe a column, and its figure in the row under the cursor."""
    field = field_of(grid.table_name, column.trend_of or column.field_id)
    yield Content.assemble((column.title, "bold"), f"  {field.unit or 'a number' if field else 'text'}")
    if column.trend_of:
        yield Content(TREND_HELP)
    yield Content(OF_SCREENS.get(column.field_id, "") if field is None else field.help)
    yield Content("")
    yield from _present(grid, column)
    yield _line("id", f"{column.trend_of or column.field_id}, in filters, exports and JSON")
    if field is None:
        return
    if field.hot is not None:
        unit = f" {field.unit}" if field.unit else ""
        yield _line("coloured", f"from {field.hot.warm:g}{unit} on, strongly from {field.hot.hot:g}{unit}")
    yield _line("source", field.source or "computed")
    yield _line("better", f"{field.improves.value}" if field.improves.value != "neither" else "neither direction")


def _present(grid: Grid, column: GridColumn) -> Iterator[Content]:
    table, key = grid.table, grid.cursor_key
    row = None if table is None or key is None else table.rows.positions.get(key)
    if table is None or row is None or column.field_id not in table.columns or column.as_text:
        return
    codes = table.tiers.get(column.field_id)
    tier = column.tier if codes is None else Tier(int(codes[row]))
    how = dict(TIER_TEXTS).get(tier, "")
    value = column.format(table.value(column.field_id, row)).strip()
    yield _line("now", f"{value} {column.unit} for {safe_text(table.rows.names[row])}".replace("  ", " "))
    if how:
        yield _line(tier.name.lower(), how)


def _line(label: str, text: str) -> Content:
    return Content.assemble((label.ljust(_LABEL), "dim"), text)
