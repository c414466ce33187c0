"""A live sweep behind the screen."""

from __future__ import annotations

from engine.sweep.plan import SweepPlan
from engine.sweep.points import Point
from engine.sweep.runner import SweepResult, SweepRunner
from engine.sweep.trial import Trial
from tui.sweep.measuring import MeasuringSession, SetKnobs
from tui.sweep.state import SweepState


class SweepSession(MeasuringSession[SweepState, SweepResult, Trial]):
    """Owns a sweep from its first point to its answer."""

    runner: SweepRunner

    @property
    def plan(self) -> SweepPlan:
        """What is measured."""
        return self.runner.plan

    @property
    def state(self) -> SweepState:
        """The sweep now."""
        runner = self.runner
        wanted = self.wanted if isinstance(self.wanted, Point) else None
        return SweepState(
            self.plan,
            runner.points,
            self.phase,
            runner.expected,
            runner.left_s,
            self._ended,
            wanted,
            runner.troubles,
            self.part,
        )

    def use(self, point: Point) -> None:
        """Set the live knobs to a point: at the end of the sweep while it goes on, else now, starting the load."""
        knobs = self.plan.knobs_at(self.plan.curves[point.curve], point.load)
        self.set_knobs(SetKnobs(self.plan.point_name(point), knobs, point))
