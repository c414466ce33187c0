"""Axes of plots: positions of values, round values to label, and the labels beside and below a plot."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from enum import Enum, auto

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tui.text.glyphs import glyphs_of
from tui.widgets.chart.axes import CLOCK_STEPS_S
from tui.widgets.plot.canvas import Canvas
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
