"""Cells of a wall: layout, order and strength."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from textual.geometry import Size

from collectors.field import Thresholds

MISSING, IDLE, LOW, MIDDLE, WARM, HOT = range(6)
"""Strength of a cell."""
STYLES = ("missing", "idle", "low", "middle", "warm", "hot")

_LOW_PART = 4.0
"""A figure below this part of the warm threshold is low."""

_WIDTHS = (16, 3, 2, 1)
"""Cell widths; the widest that shows all disks at once is used. From the first on a cell shows its name."""
NAMED_WIDTH = _WIDTHS[0]


@dataclass(frozen=True, slots=True)
class WallLayout:
    """Cells laid out on a size."""

    columns: int
    cell_width: int
    lines: int

    @classmethod
    def of(cls, cells: int, size: Size) -> WallLayout:
        """Choose the widest cells with which all are visible, or else the narrowest."""
        width = next((width for width in _WIDTHS if _lines(cells, size.width, width) <= size.height), _WIDTHS[-1])
        return cls(max(1, size.width // width), width, _lines(cells, size.width, width))


def _lines(cells: int, width: int, cell_width: int) -> int:
    return -(-cells // max(1, width // cell_width))


def strengths(values: NDArray[np.float64], thresholds: Thresholds) -> NDArray[np.intp]:
    """Map figures to MISSING to HOT."""
    with np.errstate(invalid="ignore"):
        above = [values > 0, values >= thresholds.warm / _LOW_PART, values >= thresholds.warm, values >= thresholds.hot]
    return np.where(np.isnan(values), MISSING, IDLE + np.sum(above, axis=0))


def legend(glyphs: Sequence[str], thresholds: Thresholds, unit: str) -> list[tuple[str, str]]:
    """Name each strength, as text and style."""
    warm, hot = f"{thresholds.warm:g}", f"{thresholds.hot:g} {unit}".rstrip()
    texts = ("not known", "none", f"< {thresholds.warm / _LOW_PART:g}", f"< {warm}", f">= {warm}", f">= {hot}")
    return [(f"{glyphs[strength]} {texts[strength]}", STYLES[strength]) for strength in (1, 2, 3, 4, 5, 0)]
