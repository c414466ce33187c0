"""The height of a grid on a screen."""

from __future__ import annotations

from textual.css.scalar import Scalar
from textual.widget import Widget

from collectors.model import FrameTable
from tui.widgets.grid.table import Grid

HEAD_LINES = 2
"""Titles and units."""
FEWEST_LINES = 2
OTHER_LINES = 7
"""Lines of a screen with a grid above charts: header, tabs, summary, figures, transport bar, keys."""


def fit_to_rows(grid: Grid, table: FrameTable | None, most: int | None) -> None:
    """Fit a grid's height to its rows, up to `most`; causes a layout only when the number of rows changes."""
    fit_to_count(grid, 0 if table is None else len(table.rows), most)


def fit_to_count(grid: Grid, rows: int, most: int | None) -> None:
    """Fit a grid's height to a number of rows, up to `most`; None gives it all the room.

    A blank line shows the end of the list, but for a dense view.
    """
    lines = HEAD_LINES + rows + (not grid.screen.has_class("-dense"))
    wanted = "1fr" if most is None else str(max(min(lines, most), FEWEST_LINES))
    if grid.styles.height != Scalar.parse(wanted):
        grid.styles.height = wanted


def fit_beside_charts(grid: Grid, table: FrameTable | None, charts: Widget, *, parts: int = 2) -> None:
    """Fit a grid's height to its rows, up to one of `parts` of the room it shares with the charts of the screen."""
    fit_to_rows(grid, table, (grid.screen.size.height - OTHER_LINES) // parts if charts.display else None)
