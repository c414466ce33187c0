"""What the sweep screen shows at one moment, live or recorded."""

from __future__ import annotations

from enum import StrEnum
from typing import Generic, TypeVar

from msgspec import Struct

from engine.study.points import StudyPoints
from engine.study.runner import COMPLETE

Plan = TypeVar("Plan")
Point = TypeVar("Point")
Trial = TypeVar("Trial")


class SweepPhase(StrEnum):
    """Where a study is."""

    WAITING = "waiting"
    """Nothing was started yet."""
    PREPARING = "preparing"
    MEASURING = "measuring"
    PAUSED = "paused"
    ENDED = "ended"
    RECORDED = "recorded"
    """Still measuring at this moment of a recording."""


RUNNING_PHASES = frozenset({SweepPhase.WAITING, SweepPhase.PREPARING, SweepPhase.MEASURING, SweepPhase.PAUSED})


class StudyState(Struct, Generic[Plan, Point, Trial], frozen=True):
    """A study at one moment."""

    plan: Plan
    """What was asked for; its type says which kind of study it is."""
    points: StudyPoints[Point, Trial]
    phase: SweepPhase
    expected: int = 0
    """Measurements in all, about."""
    left_s: float | None = None
    """Time left, about; None where it is not known."""
    ended: str = ""
    """Why it ended: "complete", "stopped", or what went wrong."""
    wanted: Point | None = None
    """Point whose knobs are set when it ends."""
    notes: tuple[str, ...] = ()
    """Targets that failed and points that were left out, one line each."""
    part: str = ""
    """Words that say which of several measurements it is."""
    study: tuple[str, ...] = ()
    """Tables of the study that a recording is a part of."""

    @property
    def is_complete(self) -> bool:
        """Whether all that was wanted was measured."""
        return self.ended == COMPLETE
