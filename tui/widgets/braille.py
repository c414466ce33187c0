"""Curves as dots, and dots as braille characters, two by four to a cell."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BLANK = 0x2800
"""Code point of the braille cell without dots; its low byte is a bit per dot."""
DOTS_ACROSS = 2
DOTS_DOWN = 4
_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bit of the dot in row i and column j of a cell (Unicode chapter 21, Braille Patterns)."""
_TALL = 4

_PATTERNS = (None, (1, 1, 1, 1, 0, 0), (1, 0), (1, 1, 1, 0, 1, 0))
"""Which dots along a curve are drawn: all, dashes, points, both in turn; so curves differ without colour.

Rises and falls are always whole, as a peak with holes would look lower than it is.
"""


def trace(
    low: NDArray[np.float64], high: NDArray[np.float64], rows: int, first_column: int, pattern: int
) -> NDArray[np.bool_]:
    """Draw a curve into dots of shape (rows, len(low)), row 0 on top.

    `low` and `high` are heights from 0 to 1 that the curve spans in each column, NaN for none. Dashes are counted
    from `first_column`, the number of the column since the epoch, so that they travel with the curve.
    """
    present = ~np.isnan(low)
    top = np.where(present, np.rint((1 - np.where(present, high, 0)) * (rows - 1)), rows).astype(np.intp)
    bottom = np.where(present, np.rint((1 - np.where(present, low, 0)) * (rows - 1)), -1).astype(np.intp)
    row = np.arange(rows)[:, None]
    dots: NDArray[np.bool_] = (row >= top) & (row <= bottom)
    mask = _PATTERNS[pattern % len(_PATTERNS)]
    if mask is not None:
        shown = np.array(mask, dtype=np.bool_)
        by_column = shown[(np.arange(len(low)) + first_column) % len(mask)]
        dots &= by_column | (bottom - top >= _TALL)
    return dots


def pack(dots: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Gather dots of shape (4 h, 2 w) to the bits of braille cells of shape (h, w)."""
    bits = np.zeros((dots.shape[0] // DOTS_DOWN, dots.shape[1] // DOTS_ACROSS), dtype=np.uint8)
    for i, row_bits in enumerate(_BITS):
        for j, bit in enumerate(row_bits):
            bits |= dots[i::DOTS_DOWN, j::DOTS_ACROSS] * np.uint8(bit)
    return bits
