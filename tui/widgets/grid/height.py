"""The height of a grid on a screen."""

from __future__ import annotations

from textual.css.scalar import Scalar

from collectors.model import FrameTable
from tui.widgets.grid.table import Grid

HEAD_LINES = 3
"""Titles, units, and a blank line that shows the end of the list."""
FEWEST_LINES = 2


def fit_to_rows(grid: Grid, table: FrameTable | None, most: int | None) -> None:
    """Fit a grid's height to its rows, up to `most`; causes a layout only when the number of rows changes."""
    rows = 0 if table is None else len(table.rows)
    wanted = "1fr" if most is None else str(max(min(rows + HEAD_LINES, most), FEWEST_LINES))
    if grid.styles.height != Scalar.parse(wanted):
        grid.styles.height = wanted
