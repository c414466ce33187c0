"""The points of a sweep."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from engine.study.points import StudyPoints
from engine.sweep.trial import Trial


class Point(Struct, frozen=True, order=True):
    """One combination of values."""

    curve: int
    """Index of its curve."""
    load: int
    """Value on the axis of the load; 1 without one."""


SweepPoints: TypeAlias = StudyPoints[Point, Trial]
