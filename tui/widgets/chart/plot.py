"""The plot area of a chart: characters and the owner of each cell's colour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tui.text.glyphs import Glyphs

BLANK = 0x2800
"""Code point of the braille cell without dots; its low byte is a bit per dot."""
DOTS_ACROSS = 2
DOTS_DOWN = 4
_BITS = (0x01, 0x02, 0x04, 0x40, 0x08, 0x10, 0x20, 0x80)
"""Bits of the dots of a cell, from top to bottom in the left column and then in the right one (Unicode chapter 21)."""
_BRAILLE_OF = np.array(
    [sum(bit for number, bit in enumerate(_BITS) if dots >> number & 1) for dots in range(256)], dtype=np.uint8
)
"""Bits of a cell by its dots in that order, the first in the lowest bit."""
_TALL = 4

_PATTERNS = (None, (1, 1, 1, 1, 0, 0), (1, 0), (1, 1, 1, 0, 1, 0))
"""Dots that are drawn along a curve: all, dashes, points, dashes and points; so curves differ without colour.

Rises and falls are drawn without gaps, as a peak with gaps would look lower than it is.
"""


def trace(
    low: NDArray[np.float64], high: NDArray[np.float64], rows: int, first_column: int, pattern: int
) -> NDArray[np.bool_]:
    """Draw a curve into dots of shape (rows, len(low)), row 0 on top.

    `low` and `high` are heights from 0 to 1 that the curve spans in each column, NaN for none. Dashes are counted
    from `first_column`, the number of the column since the epoch, so that they move with the curve.
    """
    top, bottom = np.rint((1 - high) * (rows - 1)), np.rint((1 - low) * (rows - 1))
    row = np.arange(rows)[:, None]
    # NaN is not in any row.
    dots: NDArray[np.bool_] = (row >= top) & (row <= bottom)
    mask = _PATTERNS[pattern % len(_PATTERNS)]
    if mask is not None:
        shown = np.array(mask, dtype=np.bool_)
        by_column = shown[(np.arange(len(low)) + first_column) % len(mask)]
        dots &= by_column | (bottom - top >= _TALL)
    return dots


def pack(dots: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Convert dots of shape (4 h, 2 w) to the bits of braille cells of shape (h, w)."""
    rows, cells = dots.shape[0] // DOTS_DOWN, dots.shape[1] // DOTS_ACROSS
    by_cell = dots.reshape(rows, DOTS_DOWN, cells, DOTS_ACROSS).transpose(0, 2, 3, 1)
    return _BRAILLE_OF[np.packbits(by_cell.reshape(rows, cells * 8), axis=1, bitorder="little")]


def first_true(mask: NDArray[np.bool_]) -> int:
    """Position of the first that is true; beyond the end if none is."""
    first = int(mask.argmax()) if len(mask) else 0
    return first if len(mask) and mask[first] else len(mask)


def owner_runs(
    codes: NDArray[np.uint32], owners: NDArray[Any], *, joined: NDArray[np.bool_]
) -> list[list[tuple[str, int]]]:
    """Text of each row of cells in runs of one owner; cells that are `joined` belong to the run on their left.

    Arguments have one shape: code points, their owners, and which cells need no run of their own.
    """
    rows, cells = codes.shape
    text = codes.tobytes().decode("utf-32-le")
    alone = ~joined
    alone[:, 0] = True
    places = np.flatnonzero(alone)
    kinds = owners.ravel()[places]
    begins = places % cells == 0
    begins[1:] |= kinds[1:] != kinds[:-1]
    starts = places[begins].tolist()
    found: list[list[tuple[str, int]]] = [[] for _ in range(rows)]
    for start, end, owner in zip(starts, [*starts[1:], rows * cells], kinds[begins].tolist(), strict=True):
        found[start // cells].append((text[start:end], owner))
    return found


GRID_LINE = -1
EVENT_LINE = -2
INSPECT_LINE = -3
NOTHING = -4
EVENT_LABEL = -5
_SPACE = ord(" ")


class Span(Struct, frozen=True):
    """What one curve spans in each column: heights from 0 to 1, NaN for none."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]


def columns_for(cells: int, glyphs: Glyphs) -> int:
    """Columns of a time scale that fill a width."""
    return cells * DOTS_ACROSS if glyphs.braille else cells


class Plot:
    """Cells of shape (rows, cells): code points, and owners, which are curve numbers or one of the constants."""

    def __init__(self, rows: int, cells: int, glyphs: Glyphs) -> None:
        self.codes: NDArray[np.uint32] = np.full((rows, cells), _SPACE, dtype=np.uint32)
        self.owners: NDArray[np.int8] = np.full((rows, cells), NOTHING, dtype=np.int8)
        self._glyphs = glyphs

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and cells."""
        rows, cells = self.codes.shape
        return rows, cells

    def row_of(self, height: float) -> int:
        """Row of a height from 0 to 1."""
        rows = self.shape[0]
        dots_down = DOTS_DOWN if self._glyphs.braille else 1
        return round((1 - height) * (rows * dots_down - 1)) // dots_down

    def draw_grid_line(self, row: int) -> None:
        """Draw a faint line behind the curves."""
        self.codes[row] = ord(self._glyphs.grid_line)
        self.owners[row] = GRID_LINE

    def draw_event_line(self, cell: int) -> None:
        """Draw the line of an event behind the curves."""
        self.codes[:, cell] = ord(self._glyphs.event_line)
        self.owners[:, cell] = EVENT_LINE

    def draw_curves(self, spans: Sequence[Span], first_column: int) -> None:
        """Draw curves, the first on top of the others."""
        if self._glyphs.braille:
            self._draw_dots(spans, first_column)
        else:
            self._draw_marks(spans, first_column)

    def draw_areas(self, codes: NDArray[np.uint32], owners: NDArray[np.int8]) -> None:
        """Fill cells with areas; owners below 0 leave a cell as it is."""
        filled = owners >= 0
        self.codes[filled] = codes[filled]
        self.owners[filled] = owners[filled]

    def free_cells(self, row: int, cell: int) -> int:
        """Count the cells from one on that hold nothing but lines."""
        return first_true(self.owners[row, cell:] >= 0)

    def draw_label(self, row: int, cell: int, text: str) -> None:
        """Write an event label."""
        self.codes[row, cell : cell + len(text)] = [ord(char) for char in text]
        self.owners[row, cell : cell + len(text)] = EVENT_LABEL

    def draw_inspect_line(self, cell: int) -> None:
        """Mark the inspected time in front of everything; the dots of curves stay visible."""
        blank = self.owners[:, cell] < 0
        self.codes[blank, cell] = ord(self._glyphs.inspect_line)
        self.owners[:, cell] = INSPECT_LINE

    def runs(self, grounded: Sequence[int]) -> list[list[tuple[str, int]]]:
        """Text of each row in runs of one owner.

        Blanks join the run on their left, where nothing is seen of its style, unless that is of an owner that is
        `grounded`: with a background of its own.
        """
        joined = self.owners == NOTHING
        for owner in grounded:
            joined[:, 1:] &= self.owners[:, :-1] != owner
        return owner_runs(self.codes, self.owners, joined=joined)

    def _draw_dots(self, spans: Sequence[Span], first_column: int) -> None:
        all_bits = np.zeros(self.shape, dtype=np.uint8)
        for number in reversed(range(len(spans))):
            span = spans[number]
            bits = pack(trace(span.low, span.high, self.shape[0] * DOTS_DOWN, first_column, number))
            self.owners[bits > 0] = number
            all_bits |= bits
        drawn = all_bits > 0
        self.codes[drawn] = BLANK + all_bits[drawn].astype(np.uint32)

    def _draw_marks(self, spans: Sequence[Span], first_column: int) -> None:
        marks = self._glyphs.curve_marks
        for number in reversed(range(len(spans))):
            dots = trace(spans[number].low, spans[number].high, self.shape[0], first_column, 0)
            self.owners[dots] = number
            self.codes[dots] = ord(marks[number % len(marks)])
