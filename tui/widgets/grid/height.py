"""How many lines of a screen a grid gets."""

from __future__ import annotations

from textual.css.scalar import Scalar

from collectors.model import FrameTable
from tui.widgets.grid.table import Grid

HEAD_LINES = 3
"""Titles, units, and a line that says the list is at its end."""
FEWEST_LINES = 2


def fit_to_rows(grid: Grid, table: FrameTable | None, most: int | None) -> None:
    """Give a grid the lines its rows need, up to `most`, or all there are; a layout only when rows come or go."""
    rows = 0 if table is None else len(table.rows)
    wanted = "1fr" if most is None else str(max(min(rows + HEAD_LINES, most), FEWEST_LINES))
    if grid.styles.height != Scalar.parse(wanted):
        grid.styles.height = wanted
