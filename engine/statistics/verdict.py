"""What a difference means: better, worse, equivalent within a margin, or undecided."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.statistics.difference import DifferenceInterval


class Better(StrEnum):
    """Which direction of a figure is an improvement."""

    HIGHER = "higher"
    LOWER = "lower"
    NEITHER = "neither"


class Verdict(StrEnum):
    """Outcome for one figure."""

    BETTER = "better"
    WORSE = "worse"
    DIFFERS = "differs"
    """Differs by more than the margin, where neither direction is good or bad by itself."""
    EQUIVALENT = "equivalent"
    """Differs by less than the margin."""
    UNDECIDED = "undecided"


def judge(interval: DifferenceInterval, margin: float, better: Better) -> Verdict:
    """Decide from the whole interval, so that a verdict is wrong no more often than the interval is.

    The three-sided rule of Goeman, Solari and Stijnen (2010): equivalent if the interval lies within the margin on both
    sides, different if it lies beyond it, and undecided if it does both. With a margin of 0 that is a test of any
    difference.
    """
    if -margin <= interval.low and interval.high <= margin:
        return Verdict.EQUIVALENT
    if interval.low > margin:
        return _direction(better, Better.HIGHER)
    if interval.high < -margin:
        return _direction(better, Better.LOWER)
    return Verdict.UNDECIDED


def _direction(better: Better, moved: Better) -> Verdict:
    if better is Better.NEITHER:
        return Verdict.DIFFERS
    return Verdict.BETTER if better is moved else Verdict.WORSE
