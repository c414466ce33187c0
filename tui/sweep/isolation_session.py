"""A live isolation curve behind the screen."""

from __future__ import annotations

from pathlib import Path
from typing import Never

from engine.isolation.aggressor_group import LimitHierarchy
from engine.isolation.plan import IsolationPlan
from engine.isolation.runner import IsolationRunner
from engine.isolation.study import IsolationPoint, IsolationStudy, point_name
from engine.study.trial_file import TrialFile
from tui.load.load_controller import LoadController
from tui.sweep.isolation_state import IsolationState
from tui.sweep.measuring import MeasuringSession
from tui.sweep.state import RUNNING_PHASES, SweepPhase


class IsolationSession(MeasuringSession[IsolationStudy, Never]):
    """Owns a curve from the victim alone to its answer."""

    WHAT = "isolation curve"

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
        super().__init__(controller, plan.victim, plan.victim.knobs, None, part=part)
        self.plan = plan
        control = controller.control
        self._runner = IsolationRunner(plan, control, hierarchy, sysfs, note=control.note_load, kept=kept)

    @property
    def runner(self) -> IsolationRunner:
        """What measures."""
        return self._runner

    @property
    def is_measuring(self) -> bool:
        """Whether a point is being measured, or the next follows at once."""
        return self._runner.progress.now is not None or not self.paused

    @property
    def least_read_pct(self) -> float:
        """Both loads only read."""
        return 100.0

    @property
    def state(self) -> IsolationState:
        """The curve now."""
        progress, phase = self._runner.progress, self._phase
        if phase is SweepPhase.MEASURING and progress.is_paused:
            phase = SweepPhase.PAUSED
        study = self._runner.study
        refused = self._ended if phase is SweepPhase.ENDED and not study.ended else ""
        return IsolationState(study, self.plan.points, phase, progress.now, progress.left_s, refused, self.part)

    def skip(self) -> None:
        """Leave out the point that is being measured."""
        now = self._runner.progress.now
        if self._phase in RUNNING_PHASES and now is not None:
            self._message = f"skipped {point_name(now.aggressor, now.cap)}"
            self._runner.skip()
