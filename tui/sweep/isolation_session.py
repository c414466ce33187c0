"""A live isolation curve behind the screen."""

from __future__ import annotations

from engine.isolation.runner import IsolationRunner
from engine.isolation.study import IsolationPoint, IsolationStudy
from tui.sweep.isolation_state import IsolationState
from tui.sweep.measuring import MeasuringSession
from tui.sweep.state import SweepPhase


class IsolationSession(MeasuringSession[IsolationState, IsolationStudy, IsolationPoint]):
    """Owns a curve from the victim alone to its answer."""

    WHAT = "isolation curve"

    runner: IsolationRunner

    @property
    def state(self) -> IsolationState:
        """The curve now."""
        runner, study = self.runner, self.runner.study
        refused = self._ended if self._phase is SweepPhase.ENDED and not study.ended else ""
        return IsolationState(study, runner.expected, self.phase, runner.now, runner.left_s, refused, self.part)
