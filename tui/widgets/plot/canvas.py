"""A plane of cells with curves in dots, marks and labels on it."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from tui.text.glyphs import Glyphs
from tui.widgets.chart.plot import BLANK, DOTS_ACROSS, DOTS_DOWN, pack
from tui.widgets.spans import Spans


class Canvas:
    """Cells of (rows, cells); positions are shares of the width from the left and of the height from below."""

    def __init__(self, rows: int, cells: int, glyphs: Glyphs) -> None:
        self.rows, self.cells = rows, cells
        self._glyphs = glyphs
        self._dots: dict[str, NDArray[np.bool_]] = {}
        """Dots by style; later ones are drawn on top."""
        self._marks: dict[tuple[int, int], tuple[str, str]] = {}

    def line(
        self, xs: NDArray[np.float64], ys: NDArray[np.float64], style: str, *, every: int = 1, plain: str = "*"
    ) -> None:
        """Draw a line through positions: every n-th dot of it, or in `plain` characters where there is no braille."""
        down, across = (DOTS_DOWN, DOTS_ACROSS) if self._glyphs.braille else (1, 1)
        shape = (self.rows * down, self.cells * across)
        dots = self._dots.setdefault(style, np.zeros((self.rows * DOTS_DOWN, self.cells * DOTS_ACROSS), np.bool_))
        steps = max(1, 2 * (shape[0] + shape[1]) // max(len(xs) - 1, 1))
        at = np.linspace(0, len(xs) - 1, steps * max(len(xs) - 1, 1) + 1)
        columns = np.rint(np.interp(at, np.arange(len(xs)), xs) * (shape[1] - 1)).astype(np.intp)
        rows = np.rint((1 - np.interp(at, np.arange(len(ys)), ys)) * (shape[0] - 1)).astype(np.intp)
        inside = (columns >= 0) & (columns < shape[1]) & (rows >= 0) & (rows < shape[0])
        if not self._glyphs.braille:
            for row, column in zip(rows[inside].tolist(), columns[inside].tolist(), strict=True):
                self._marks[row, column] = (plain, style)
            return
        keep = inside & ((columns + rows) % every == 0)
        dots[rows[keep], columns[keep]] = True

    def cell(self, x: float, y: float) -> tuple[int, int]:
        """Row and column of a position."""
        return round((1 - y) * (self.rows - 1)), round(x * (self.cells - 1))

    def mark(self, x: float, y: float, text: str, style: str) -> None:
        """Put a character on a position, on top of lines and other marks."""
        row, column = self.cell(x, y)
        if 0 <= row < self.rows and 0 <= column < self.cells:
            self._marks[row, column] = (text, style)

    def label(self, x: float, y: float, text: str, style: str) -> None:
        """Write beside a position, right of it or else left, where nothing is yet; not at all without room."""
        row, column = self.cell(x, y)
        for line in (row, row - 1, row + 1):
            for start in (column + 1, column - len(text)):
                cells = [(line, start + number) for number in range(len(text))]
                free = all(cell not in self._marks for cell in cells)
                if 0 <= line < self.rows and start >= 0 and start + len(text) <= self.cells and free:
                    self._marks |= {cell: (char, style) for cell, char in zip(cells, text, strict=True)}
                    return

    def row(self, row: int) -> Spans:
        """Text and styles of a row."""
        cells = [(" ", "text")] * self.cells
        all_bits = np.zeros(self.cells, np.uint8)
        for style, dots in self._dots.items():
            bits = pack(dots[row * DOTS_DOWN : (row + 1) * DOTS_DOWN])[0]
            all_bits |= bits
            for column in np.flatnonzero(bits).tolist():
                cells[column] = (chr(BLANK + int(all_bits[column])), style)
        for column in range(self.cells):
            cells[column] = self._marks.get((row, column), cells[column])
        # A run for each cell would make drawing a plot several times as long.
        runs = ((style, [text for text, _ in run]) for style, run in groupby(cells, itemgetter(1)))
        return [("".join(texts), style) for style, texts in runs]
