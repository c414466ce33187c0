"""The points of a sweep as they stand: measured, being measured, left out."""

from __future__ import annotations

from msgspec import Struct

from engine.sweep.trial import Trial


class Point(Struct, frozen=True, order=True):
    """One combination of values."""

    curve: int
    """Index of its curve."""
    load: int
    """Value on the axis of the load; 1 without one."""


class LeftOut(Struct, frozen=True):
    """A point that is not measured, or not again."""

    point: Point
    reason: str
    """Empty if the operator skipped it."""

    @property
    def words(self) -> str:
        """What became of the point."""
        return f"failed: {self.reason}" if self.reason else "skipped"


class SweepPoints(Struct, frozen=True):
    """All points at one moment; never changed."""

    trials: tuple[tuple[Trial, ...], ...]
    """Trials by curve."""
    left_out: tuple[LeftOut, ...] = ()
    measuring: Point | None = None

    @property
    def done(self) -> int:
        """Measurements made."""
        return sum(map(len, self.trials))
