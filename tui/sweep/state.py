"""What the sweep screen shows at one moment, live or recorded."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct, field

from engine.sweep.events import RecordedSweep
from engine.sweep.plan import SweepPlan
from engine.sweep.points import Point, SweepPoints


class SweepPhase(StrEnum):
    """Where a sweep is."""

    WAITING = "waiting"
    """Nothing was started yet."""
    PREPARING = "preparing"
    MEASURING = "measuring"
    PAUSED = "paused"
    ENDED = "ended"
    RECORDED = "recorded"
    """Still measuring at this moment of a recording."""


RUNNING_PHASES = frozenset({SweepPhase.WAITING, SweepPhase.PREPARING, SweepPhase.MEASURING, SweepPhase.PAUSED})


class SweepState(Struct, frozen=True):
    """A sweep at one moment."""

    plan: SweepPlan
    points: SweepPoints
    phase: SweepPhase
    expected: int
    """Measurements in all, about."""
    left_s: float | None = None
    """Time left, about; None where it is not known."""
    ended: str = ""
    """Why it ended: "complete", "stopped", or what went wrong."""
    wanted: Point | None = None
    """Point whose knobs are set when the sweep ends."""
    notes: tuple[str, ...] = field(default=())
    """Targets that failed and points that were left out, one line each."""
    part: str = ""
    """Words that say which of several measurements it is."""
    study: tuple[str, ...] = ()
    """Tables of the study that a recording is a part of."""

    @property
    def is_complete(self) -> bool:
        """Whether every point that was wanted was measured."""
        return self.ended == "complete"


def recorded_state(found: RecordedSweep, study: tuple[str, ...] = ()) -> SweepState:
    """Show a recorded sweep, with the tables of the study that it is a part of."""
    phase = SweepPhase.ENDED if found.ended else SweepPhase.RECORDED
    notes = (f"{found.plan.point_name(each.point)}: {each.words}" for each in found.points.left_out)
    return SweepState(
        found.plan,
        found.points,
        phase,
        max(found.plan.trials, found.points.done),
        ended=found.ended,
        notes=tuple(notes),
        part=": ".join(filter(None, (found.plan.preset, found.plan.part))),
        study=study,
    )
