"""A live isolation curve behind the screen."""

from __future__ import annotations

from pathlib import Path

from engine.isolation.aggressor_group import LimitHierarchy
from engine.isolation.plan import IsolationPlan
from engine.isolation.runner import IsolationRunner
from engine.isolation.study import IsolationPoint, IsolationStudy
from engine.study.trial_file import TrialFile
from tui.load.load_controller import LoadController
from tui.sweep.isolation_state import IsolationState
from tui.sweep.measuring import MeasuringSession
from tui.sweep.state import SweepPhase


class IsolationSession(MeasuringSession[IsolationStudy, IsolationPoint]):
    """Owns a curve from the victim alone to its answer."""

    WHAT = "isolation curve"

    runner: IsolationRunner

    def __init__(
        self,
        plan: IsolationPlan,
        controller: LoadController,
        hierarchy: LimitHierarchy,
        sysfs: Path,
        *,
        part: str = "",
        kept: TrialFile[IsolationPoint] | None = None,
    ) -> None:
        super().__init__(controller, plan.victim, plan.victim.knobs, kept, part=part)
        self.plan = plan
        control, done = controller.control, () if kept is None else tuple(kept.done)
        note = control.note_load
        self.runner = IsolationRunner(plan, control, hierarchy, sysfs, keep=self._keep, done=done, note=note)

    @property
    def least_read_pct(self) -> float:
        """Both loads only read."""
        return 100.0

    @property
    def state(self) -> IsolationState:
        """The curve now."""
        runner, study = self.runner, self.runner.study
        refused = self._ended if self._phase is SweepPhase.ENDED and not study.ended else ""
        return IsolationState(study, runner.expected, self.phase, runner.now, runner.left_s, refused, self.part)
