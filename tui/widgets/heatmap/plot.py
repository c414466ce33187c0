"""The cells of a heat map: characters, and the owner of each cell's style."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tui.text.glyphs import Glyphs
from tui.widgets.chart.plot import first_true, owner_runs
from tui.widgets.heatmap.model import HeatPicture

P50, P99, PEAK, BEYOND, UNKNOWN, EVENT, GRID = range(16, 23)
"""Owners of cells besides the levels 0 to 8."""
OWNER_BITS, UNDER_SHIFT = 0x1F, 5
"""Parts of an owner: its kind, and in higher bits the level under a line, which tints its background."""
MARKED, CROSS, CURSOR = 512, 1024, 2048
"""Added to an owner within the marked range, on the lines through the cursor, and on the cursor itself."""
_SPACE = ord(" ")


class HeatPlot:
    """Cells of shape (rows, cells), drawn from back to front."""

    def __init__(self, picture: HeatPicture, glyphs: Glyphs) -> None:
        self._picture = picture
        self._glyphs = glyphs
        ramp = np.array([ord(glyph) for glyph in glyphs.heat], np.uint32)
        self.owners: NDArray[np.uint16] = picture.levels.astype(np.uint16)
        self.codes: NDArray[np.uint32] = ramp[picture.levels]
        unknown = picture.column_of_cell < 0
        if unknown.all():
            return
        unknown[: int(np.argmin(unknown))] = False  # there is no gap before the first
        self.codes[:, unknown] = ord(glyphs.unknown)
        self.owners[:, unknown] = UNKNOWN

    def draw_grid_line(self, row: int) -> None:
        """Draw a faint line in empty cells."""
        self._where(self.owners[row] == 0, row, self._glyphs.grid_line, GRID)

    def draw_event_line(self, cell: int) -> None:
        """Draw the line of an event in empty cells."""
        blank = (self.owners[:, cell] == 0) | (self.owners[:, cell] >= UNKNOWN)
        self.codes[blank, cell] = ord(self._glyphs.event_line)
        self.owners[blank, cell] = EVENT

    def free_cells(self, row: int, cell: int) -> int:
        """Count the cells from one on that hold no I/O."""
        own = self.owners[row, cell:]
        return first_true((own != 0) & (own < UNKNOWN))

    def draw_label(self, row: int, cell: int, text: str) -> None:
        """Write an event label."""
        end = cell + len(text)
        self.codes[row, cell:end] = [ord(char) for char in text]
        self.owners[row, cell:end] = EVENT

    def draw_lines(self) -> None:
        """Draw median, 99th percentile and peak of every column, the peak in front."""
        columns, known = self._picture.columns, self._picture.column_of_cell
        if not len(columns):
            return
        values = (*columns.percentiles_ns, columns.peaks_ns)
        for latency_ns, owner, glyph in zip(values, (P50, P99, PEAK), self._glyphs.heat_lines, strict=True):
            row = np.append(columns.rows.row_of(latency_ns), -1)[known]
            self._draw_line(row, owner, glyph)

    def highlight_cells(self, cells: NDArray[np.intp] | slice, amount: int) -> None:
        """Highlight columns of cells."""
        self.owners[:, cells] |= amount

    def highlight_row(self, row: int, amount: int) -> None:
        """Highlight a row."""
        self.owners[row] |= amount

    def runs(self) -> list[list[tuple[str, int]]]:
        """Text of each row in runs of one owner; plain blanks join the run on their left unless that is highlighted."""
        plain = self.owners == 0
        plain[:, 0] = False
        plain[:, 1:] &= self.owners[:, :-1] <= OWNER_BITS
        return owner_runs(self.codes, self.owners, joined=plain)

    def _draw_line(self, row_from_below: NDArray[np.int64], owner: int, glyph: str) -> None:
        rows = self.owners.shape[0]
        cell = np.flatnonzero((row_from_below >= 0) & (row_from_below < rows))
        row = rows - 1 - row_from_below[cell]
        self.codes[row, cell] = ord(glyph)
        self.owners[row, cell] = owner
        if owner != PEAK:
            self.owners[row, cell] |= self._picture.levels[row, cell].astype(np.uint16) << UNDER_SHIFT
        else:
            beyond = np.flatnonzero(row_from_below >= rows)
            self.codes[0, beyond] = ord(self._glyphs.hot)
            self.owners[0, beyond] = BEYOND

    def _where(self, mask: NDArray[np.bool_], row: int, glyph: str, owner: int) -> None:
        self.codes[row, mask] = ord(glyph)
        self.owners[row, mask] = owner
