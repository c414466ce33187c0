"""Areas stacked on each other: which interval each column shows, and the cells that it fills.

A column is one cell wide, so that the picture moves by whole cells, which the terminal shifts by itself.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tui.text.glyphs import Glyphs
from tui.widgets.chart.axes import Axis, TimeScale

EIGHTHS = 8
LOWER, UPPER, UNSPLIT, LOWER_ON_UPPER, UPPER_TOP, UNSPLIT_TOP = range(6)
"""Owners of filled cells: the lower part, the upper part, the whole where its parts are not known, a cell that both
parts share, and the topmost cell of an area."""
EMPTY = -1


class AreaColumns(Struct, frozen=True, eq=False):
    """Heights by column, NaN where there is no figure: the whole, and its lower part if that is known."""

    whole: NDArray[np.float64]
    lower: NDArray[np.float64]


def area_columns(
    times_ns: NDArray[np.int64],
    whole: NDArray[np.float64],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    scale: TimeScale,
) -> AreaColumns:
    """Choose the interval of each column: the one with the largest whole of those that end in it, else the next.

    A figure is of the interval that ends at its time, so its column reaches back to the interval before. Where both
    parts are known their sum is the whole; a column has parts of one interval, never of several.
    """
    sums = lower + upper
    split = ~np.isnan(sums)
    total = np.where(split, sums, whole)
    missing = np.full(scale.columns, np.nan)
    if not len(times_ns):
        return AreaColumns(missing, missing)
    column_of = (times_ns - scale.start_ns) // scale.column_ns
    columns = np.arange(scale.columns)
    order = np.lexsort((np.where(np.isnan(total), -np.inf, total), column_of))
    largest = np.searchsorted(column_of[order], columns, "right") - 1
    following = np.searchsorted(column_of, columns, "left")
    here = (largest >= 0) & (column_of[order[np.maximum(largest, 0)]] == columns)
    between = ~here & (following > 0) & (following < len(times_ns))
    chosen = np.where(here, order[np.maximum(largest, 0)], np.where(between, following, 0))
    shown = here | between
    return AreaColumns(np.where(shown, total[chosen], np.nan), np.where(shown & split[chosen], lower[chosen], np.nan))


def fill_areas(
    areas: AreaColumns, axis: Axis, rows: int, glyphs: Glyphs, *, shades: bool
) -> tuple[NDArray[np.uint32], NDArray[np.int8]]:
    """Draw columns into cells of shape (rows, columns): code points, and owners, EMPTY outside the areas.

    A figure that is known fills at least an eighth of a cell: it differs from a gap. `shades` ends areas that are
    drawn with a shade in shades, for terminals without the colours of a dimmed block.
    """
    top, bottom = _eighths(areas.whole, axis, rows, least=1), _eighths(areas.lower, axis, rows, least=0)
    split = ~np.isnan(areas.lower)
    base = (EIGHTHS * np.arange(rows)[::-1])[:, None]
    filled, lower = np.clip(top - base, 0, EIGHTHS), np.where(split, np.clip(bottom - base, 0, EIGHTHS), 0)
    if not glyphs.area_levels:
        return _characters(filled, lower, split, glyphs)
    owners = np.full(filled.shape, EMPTY, np.int8)
    full = filled == EIGHTHS
    only = np.where(split, UPPER, UNSPLIT)[None, :]
    owners = np.where(full, only, owners)
    owners = np.where((filled > 0) & ~full, only + (UPPER_TOP - UPPER), owners)
    owners = np.where((lower > 0) & (lower < EIGHTHS) & (filled > lower), LOWER_ON_UPPER, owners)
    shared_top = (owners == LOWER_ON_UPPER) & ~full
    owners = np.where(shared_top, np.where(2 * lower >= filled, LOWER, UPPER_TOP), owners)
    owners = np.where((lower > 0) & (lower == filled), LOWER, owners).astype(np.int8)
    levels = np.array([ord(char) for char in glyphs.area_levels], np.uint32)
    codes = levels[np.where(owners == LOWER_ON_UPPER, lower, filled)]
    for owner, glyph in ((UPPER, glyphs.areas[1]), (UNSPLIT, glyphs.areas[2])):
        codes[owners == owner] = ord(glyph)
    if shades:
        for owner, glyph in ((UPPER_TOP, glyphs.areas[1]), (UNSPLIT_TOP, glyphs.areas[2])):
            codes[(owners == owner) & (2 * filled >= EIGHTHS)] = ord(glyph)
    return codes, owners


def _eighths(values: NDArray[np.float64], axis: Axis, rows: int, *, least: int) -> NDArray[np.int64]:
    """Heights in eighths of a cell; 0 for NaN, at least `least` for all others."""
    heights = axis.position(values)
    known = ~np.isnan(heights)
    return np.where(known, np.maximum(np.rint(np.where(known, heights, 0) * rows * EIGHTHS), least), 0).astype(np.int64)


def _characters(
    filled: NDArray[np.int64], lower: NDArray[np.int64], split: NDArray[np.bool_], glyphs: Glyphs
) -> tuple[NDArray[np.uint32], NDArray[np.int8]]:
    """Fill whole cells with characters; a figure below half a cell is a line at the bottom."""
    half = EIGHTHS // 2
    owners = np.where(filled >= half, np.where(split, UPPER, UNSPLIT)[None, :], EMPTY)
    owners = np.where(lower >= half, LOWER, owners)
    codes = np.array([ord(glyph) for glyph in glyphs.areas], np.uint32)[np.maximum(owners, 0)]
    codes[owners == EMPTY] = ord(" ")
    low = (owners == EMPTY) & (filled > 0)
    low[:-1] = False
    codes[low] = ord(glyphs.area_floor)
    owners = np.where(low, np.where(split, LOWER, UNSPLIT)[None, :], owners)
    return codes, owners.astype(np.int8)
