"""The points of a study as they stand: measured, being measured, left out."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from msgspec import Struct

Point = TypeVar("Point")
Trial = TypeVar("Trial")


class LeftOut(Struct, frozen=True):
    """A point that is not measured, or not again."""

    point: Any
    """The point, or its name where that is all that is recorded of it."""
    reason: str = ""
    """Empty if the operator skipped it."""

    @property
    def words(self) -> str:
        """What became of the point."""
        return f"failed: {self.reason}" if self.reason else "skipped"


class StudyPoints(Struct, Generic[Point, Trial], frozen=True):
    """All points at one moment; never changed."""

    trials: tuple[tuple[Trial, ...], ...]
    """Trials by curve."""
    left_out: tuple[LeftOut, ...] = ()
    measuring: Point | None = None

    @property
    def done(self) -> int:
        """Measurements made."""
        return sum(map(len, self.trials))
