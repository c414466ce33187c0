"""What the sweep screen shows of an isolation curve at one moment, live or recorded."""

from __future__ import annotations

from msgspec import Struct

from engine.isolation.events import RecordedIsolation
from engine.isolation.study import IsolationPoint, IsolationStudy
from tui.sweep.state import RUNNING_PHASES, SweepPhase


class IsolationState(Struct, frozen=True):
    """A curve at one moment."""

    study: IsolationStudy
    expected: int
    """Points in all."""
    phase: SweepPhase
    now: IsolationPoint | None = None
    """Being measured, with the seconds so far."""
    left_s: float | None = None
    """Time left, about; None where it is not known."""
    refused: str = ""
    """Why it did not begin."""
    part: str = ""
    """Words that say which of several measurements it is."""

    @property
    def ended(self) -> str:
        """Why points are missing; empty if none is, or it goes on."""
        skipped = len(self.study.left_out)
        words = f"{skipped} skipped" if skipped and self.phase is SweepPhase.ENDED else ""
        return self.refused or self.study.ended or words

    @property
    def is_complete(self) -> bool:
        """Whether it is over and no point is missing."""
        return self.phase is SweepPhase.ENDED and not self.ended

    @property
    def points(self) -> tuple[IsolationPoint, ...]:
        """All points in their order, with the one being measured."""
        now = () if self.now is None or self.phase not in RUNNING_PHASES else (self.now,)
        return (*self.study.points, *now)


def recorded_isolation_state(found: RecordedIsolation) -> IsolationState:
    """Make the state of a recorded curve."""
    phase = SweepPhase.ENDED if found.is_over else SweepPhase.RECORDED
    return IsolationState(found.study, found.expected, phase)
