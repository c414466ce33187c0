"""Histogram cells in the row order of a table."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from collectors.derive.counter_deltas import positions
from collectors.model import Histograms, Rows


def rows_of_cells(rows: Rows, histograms: Histograms) -> NDArray[np.intp]:
    """Row in `rows` of every cell, -1 for cells of rows that are missing there."""
    row = histograms.row.astype(np.intp)
    if histograms.rows is not rows:
        to_row = np.append(positions(rows, histograms.rows.keys), -1)
        row = to_row[np.minimum(row, len(histograms.rows))]
    found: NDArray[np.intp] = np.where(row < len(rows), row, -1)
    return found
