"""The points of a sweep as they stand: measured, being measured, left out."""

from __future__ import annotations

from dataclasses import dataclass

from engine.sweep.trial import Trial


@dataclass(frozen=True, slots=True, order=True)
class Point:
    """One combination of values."""

    curve: int
    """Index of its curve."""
    load: int
    """Value on the axis of the load; 1 without one."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A point that is not measured, or not again."""

    point: Point
    reason: str
    """Empty if the operator skipped it."""

    @property
    def words(self) -> str:
        """What became of it."""
        return f"failed: {self.reason}" if self.reason else "skipped"


@dataclass(frozen=True, slots=True)
class SweepPoints:
    """All points at one moment; never changed."""

    trials: tuple[tuple[Trial, ...], ...]
    """By curve."""
    left_out: tuple[LeftOut, ...] = ()
    measuring: Point | None = None

    @property
    def done(self) -> int:
        """Measurements made."""
        return sum(map(len, self.trials))
