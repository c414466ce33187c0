"""Severity of each row of the path screen, to sort, mark and filter by."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from collectors.paths.groups import GroupBy
from collectors.paths.state import PathLevel
from collectors.tables.block.path_verdict import PathJudgement
from tui.history.gone_paths import GonePaths
from tui.paths.layout import PathLayout

UNEVEN, SICK, DOWN, GONE = 2.0, 3.0, 4.0, 5.0
_BY_LEVEL = {
    PathLevel.ACTIVE: 0.0,
    PathLevel.SECONDARY: 0.5,
    PathLevel.STANDBY: 1.0,
    PathLevel.MARGINAL: UNEVEN,
    PathLevel.DOWN: DOWN,
}
_PER_OCTAVE, _MOST_OCTAVES = 0.1, 9.0
"""Degraded paths are sorted slowest first, by powers of two, so that rows do not jump."""


def severities(layout: PathLayout, judged: PathJudgement | None, gone: GonePaths) -> NDArray[np.float64]:
    """Severity of each row of a layout; that of a group is that of its worst path."""
    values = np.array([_BY_LEVEL[level] for level in PathLevel])[layout.levels]
    if judged is not None:
        values = np.maximum(values, np.where(np.isnan(judged.uneven_times), 0.0, UNEVEN))
        values = np.maximum(values, _sickness(judged.sick_times))
    worst = np.zeros(layout.group_count)
    grouped = layout.groups.group_of_row >= 0
    np.maximum.at(worst, layout.groups.group_of_row[grouped], values[grouped])
    return np.concatenate((np.where(_with_gone(layout, gone), GONE, worst), values))


def _sickness(times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rank degraded paths between uneven and down ones; 0 for all others."""
    sick = ~np.isnan(times)
    octaves = np.minimum(np.floor(np.log2(np.where(sick, times, 1.0))), _MOST_OCTAVES)
    return np.where(sick, SICK + _PER_OCTAVE * octaves, 0.0)


def _with_gone(layout: PathLayout, gone: GonePaths) -> NDArray[np.bool_]:
    """Mark groups that are LUNs with lost paths."""
    if not len(gone) or layout.groups.by is not GroupBy.LUN:
        return np.zeros(layout.group_count, np.bool_)
    return np.array([bool(gone.of_lun(key)) for key in layout.groups.of], np.bool_)
