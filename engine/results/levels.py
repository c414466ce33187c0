"""Levels of an epoch below and above its targets: paths, and logical I/Os before they were cut into parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.backend.protocol import Cells, EpochStats


@dataclass(frozen=True, slots=True, eq=False)
class LevelStats:
    """Statistics of one level as engine.results.measured reads them: rows as EpochStats has them of targets."""

    counts: NDArray[np.uint64]
    peaks: NDArray[np.uint64]
    cells: Cells


def path_level(stats: EpochStats) -> LevelStats:
    """Read the paths of all targets, in the order of targets; their per-second maxima are not collected."""
    rows = len(stats.path_counts)
    return LevelStats(stats.path_counts, np.zeros((rows + 1, 3, 2), np.uint64), stats.path_cells)


def logical_level(stats: EpochStats) -> LevelStats:
    """Read the logical I/Os, which are one row."""
    return LevelStats(stats.logical_counts, stats.logical_peaks, stats.logical_cells)
