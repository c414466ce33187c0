"""Plots of figures over each other: a plane of cells with curves in dots, and axes with labels of round values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from enum import Enum, auto
from itertools import groupby
from operator import itemgetter

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tui.text.glyphs import Glyphs, glyphs_of
from tui.widgets.chart.axes import CLOCK_STEPS_S
from tui.widgets.chart.plot import BLANK, DOTS_ACROSS, DOTS_DOWN, pack
from tui.widgets.spans import Spanned, Spans

Floats = NDArray[np.float64]

AXIS_CELLS = 7
"""Cells of the labels of the vertical axis."""
_ROWS_PER_LABEL = 3
_MANTISSAS = ((1, 2, 5), (1, 3), (1,))
"""Round values of a decade, by how many there is room for."""


class Rounding(Enum):
    """What values of an axis are round."""

    DECIMAL = auto()
    CLOCK = auto()
    """Round values of seconds, as on a clock."""
    BINARY = auto()
    """Powers of two and their multiples, as for bytes, whose labels count in 1024."""


class PlotAxis(Struct, frozen=True):
    """A range of values, linear or in logarithms; positions in it are shares of its length."""

    low: float
    high: float
    is_log: bool = False
    rounding: Rounding = Rounding.DECIMAL

    def at(self, values: Floats | float) -> Floats:
        """Positions of values; in logarithms, what is below the range is at its low end."""
        if self.is_log:
            inside = np.maximum(np.asarray(values, np.float64), self.low)
            return np.asarray(np.log(inside / self.low) / math.log(self.high / self.low), np.float64)
        return np.asarray((np.asarray(values, np.float64) - self.low) / (self.high - self.low), np.float64)

    def round_values(self, parts: int) -> list[float]:
        """Find round values in the range, ascending, with at most a number of steps between them.

        On an axis in logarithms they are such of its decades, or of a linear one if it has less than a factor of two.
        """
        if self.is_log and self.high >= 2 * self.low:
            return self._round_powers(parts + 1)
        step = self._step(parts)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)]

    def _round_powers(self, most: int) -> list[float]:
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for apart in range(1, len(powers) + 1):
            for mantissas in _MANTISSAS if apart == 1 else ((1,),):
                values = [mantissa * 10.0**power for power in powers[::apart] for mantissa in mantissas]
                inside = [value for value in values if self.low <= value * (1 + 1e-9) and value <= self.high]
                if len(inside) <= most:
                    return inside
        return []

    def _step(self, parts: int) -> float:
        least = (self.high - self.low) / parts
        if self.rounding is Rounding.CLOCK and least <= CLOCK_STEPS_S[-1]:
            return next(step for step in CLOCK_STEPS_S if step >= least)
        if self.rounding is Rounding.BINARY and least >= 1:
            return 2.0 ** math.ceil(math.log2(least) - 1e-9)
        power = 10.0 ** math.floor(math.log10(least))
        return next(step * power for step in (1, 2, 5, 10) if step * power >= least * (1 - 1e-9))


def labelled_rows(axis: PlotAxis, rows: int, label: Callable[[float], str]) -> dict[int, str]:
    """Label round values by the rows of a plot they are in, none beside another."""
    found: dict[int, str] = {}
    for value in axis.round_values(max(2, rows // _ROWS_PER_LABEL)):
        row = round((1 - float(axis.at(value))) * (rows - 1))
        if found.keys().isdisjoint((row - 1, row, row + 1)):
            found[row] = label(value)
    return found


def plot_lines(widget: Spanned, canvas: Canvas, axis: PlotAxis, label: Callable[[float], str]) -> Iterator[Spans]:
    """Give the rows of a plot with labels at their left, and the line below them."""
    glyphs = glyphs_of(widget)
    labels = labelled_rows(axis, canvas.rows, label)
    for row in range(canvas.rows):
        bar = glyphs.tick_left if row in labels else glyphs.vertical
        yield [(labels.get(row, "").rjust(AXIS_CELLS) + bar, "axis"), *canvas.row(row)]
    yield [(" " * AXIS_CELLS + glyphs.corner + glyphs.horizontal * canvas.cells, "axis")]


def line_below(axis: PlotAxis, cells: int, label: Callable[[float], str], label_cells: int = 6) -> str:
    """Give the line of labels below a plot, at round values; a label has a largest number of cells."""
    values = axis.round_values(max(2, cells // (2 * label_cells)))
    return labels_below([(float(axis.at(value)), label(value)) for value in values], cells)


def labels_below(labels: Sequence[tuple[float, str]], cells: int) -> str:
    """Give the line below a plot with labels in the middle of their positions, but for those that would collide."""
    text = [" "] * (AXIS_CELLS + 1 + cells)
    for position, label in labels:
        middle = AXIS_CELLS + 1 + round(position * (cells - 1))
        start = min(max(middle - len(label) // 2, AXIS_CELLS), len(text) - len(label))
        if all(char == " " for char in text[max(start - 1, 0) : start + len(label) + 1]):
            text[start : start + len(label)] = label
    return "".join(text)


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
