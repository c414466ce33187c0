"""What the sweep screen shows of a search for rates at one moment, live or recorded."""

from __future__ import annotations

from msgspec import Struct

from engine.rate_search.events import RecordedRates
from engine.rate_search.plan import RatePlan, RatePoint
from engine.rate_search.trial import RateTrial
from tui.sweep.state import SweepPhase


class RateState(Struct, frozen=True):
    """A search at one moment."""

    plan: RatePlan
    trials: tuple[tuple[RateTrial, ...], ...]
    """Trials by combination."""
    phase: SweepPhase
    now: RatePoint | None = None
    """Being tried."""
    left_s: float | None = None
    """Time left, about; None where it is not known."""
    ended: str = ""
    """Why it ended: "complete", "stopped", or what went wrong."""
    wanted: RatePoint | None = None
    """Rate that is set when the search ends."""
    notes: tuple[str, ...] = ()
    """Targets that failed, one line each."""
    part: str = ""
    """Words that say which of several measurements it is."""

    @property
    def done(self) -> int:
        """Trials made."""
        return sum(map(len, self.trials))

    @property
    def is_complete(self) -> bool:
        """Whether every limit was decided as far as it can be."""
        return self.ended == "complete"


def recorded_rate_state(found: RecordedRates) -> RateState:
    """Make the state of a recorded search."""
    phase = SweepPhase.ENDED if found.ended else SweepPhase.RECORDED
    return RateState(found.plan, found.trials, phase, ended=found.ended)
