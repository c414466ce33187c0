"""Drives a running load over the points of a plan and keeps what was measured."""

from __future__ import annotations

import functools
import random
import time
from collections.abc import Callable, Generator, Iterator, Sequence

from msgspec import Struct

from engine.errors import LunscopeError
from engine.job.knobs import Knobs
from engine.job.spec import JobSpec
from engine.study.events import Data, Note
from engine.study.load import Load, PointWatch
from engine.study.points import LeftOut
from engine.study.runner import COMPLETE, StudyResult, StudyRunner, Wanted
from engine.sweep.curve_jobs import CurveJobs
from engine.sweep.events import begin_event, end_event, left_out_event, trial_event
from engine.sweep.knee import Answer, answer
from engine.sweep.measure import PointMeter
from engine.sweep.plan import Curve, SweepPlan
from engine.sweep.points import Point
from engine.sweep.setting_axis import SettingKnob
from engine.sweep.trial import SearchStage, Trial
from engine.sweep.tuning import SweepTuning


class CurveResult(Struct, frozen=True):
    """What was measured of one curve, and what it says."""

    curve: Curve
    trials: tuple[Trial, ...]
    answer: Answer


class SweepResult(StudyResult[SweepPlan, CurveResult], frozen=True):
    """A whole sweep, or as much of it as was measured."""


class SweepRunner(StudyRunner[Point, Trial, SweepResult]):
    """Measures the points of a plan."""

    def __init__(
        self,
        plan: SweepPlan,
        load: Load,
        keep: Callable[[int, Trial], None] = lambda _curve, _trial: None,
        done: Sequence[tuple[int, Trial]] = (),
        *,
        clock: Callable[[], float] = time.monotonic,
        note: Note = lambda _text, _data: None,
        watch: PointWatch | None = None,
        tuning: SweepTuning | None = None,
    ) -> None:
        super().__init__(load, len(plan.curves), keep, done, clock=clock, note=note, watch=watch)
        self.plan = plan
        self._tuning = SweepTuning(plan) if tuning is None else tuning
        self._resumed = len(done)
        self._start_s = self._begun_s - max((trial.start_s + trial.duration_s for _, trial in done), default=0.0)
        self._jobs = CurveJobs(plan, load, self._stop.is_set)
        drops_cache = any(axis.knob.id == "mode" for axis in plan.axes)
        self._meter = PointMeter(load, plan.rule, self.is_interrupted, clock, self._watch, drops_cache=drops_cache)

    @property
    def shown_plan(self) -> SweepPlan:
        """What was asked for."""
        return self.plan

    @property
    def expected(self) -> int:
        """Measurements in all, about."""
        return max(self.plan.trials, self.done)

    @property
    def left_s(self) -> float:
        """Time left at the pace of those measured so far."""
        measured = self.done - self._resumed
        usual_s = self.plan.expected_s[0] / max(self.plan.trials, 1)
        each_s = (self._clock() - self._begun_s) / measured if measured else usual_s
        return (self.expected - self.done) * each_s

    def result_if_done(self) -> SweepResult | None:
        """Return the result without any load where all points are measured already; None where some are not."""
        if next(self.wanted(), None) is not None:
            return None
        self.note_start()
        self._note(*end_event(COMPLETE))
        return self.result_so_far(COMPLETE)

    def wanted(self) -> Generator[Wanted[Point, Trial]]:
        """Take the stages of the search one after the other, each over all curves; or all points, round by round."""
        if self.plan.rounds:
            yield from self._rounds()
            return
        for stage in SearchStage:
            points = (
                self._wanted(curve, load, stage)
                for curve in self.plan.curves
                for load in curve.search.wanted(stage, self._trials[curve.index])
            )
            if stage is SearchStage.REPEAT:
                # Over all curves: what drifts must not look like the effect of an axis.
                shuffled = list(points)
                random.Random(self.plan.job.seed).shuffle(shuffled)  # noqa: S311 (order, not secrets)
                yield from shuffled
            else:
                yield from points

    def _rounds(self) -> Iterator[Wanted[Point, Trial]]:
        """Take each point once in a round."""
        for number in range(self.plan.rounds):
            for curve in self.plan.in_round(number):
                if len(self._trials[curve.index]) <= number:
                    yield self._wanted(curve, curve.search.loads[0], SearchStage.LADDER)

    def _wanted(self, curve: Curve, load: int, stage: SearchStage) -> Wanted[Point, Trial]:
        return Wanted(Point(curve.index, load), curve.index, functools.partial(self._measure, curve, load, stage))

    def _measure(self, curve: Curve, load: int, stage: SearchStage) -> Trial:
        self._tuning.set(curve)
        knobs = self.plan.knobs_at(curve, load)
        self._jobs.set(curve, knobs)
        trial = self._meter.measure(knobs, load, stage, self._start_s)
        self._name_failing(trial.failing, f"from {self.now_name} on; points with it are not in the curve")
        return trial

    def failed(self, point: Point, error: LunscopeError | None) -> str:
        """Leave the point out."""
        reason = str(error) if error is not None else "" if self._skip.is_set() else "stopped meanwhile"
        left_out, self._now = LeftOut(point, reason), None
        self._left_out.append(left_out)
        self._say_trouble(f"{self.name_of(point)}: left out" + (f": {reason}" if reason else ""))
        self._note(*left_out_event(self.plan, left_out))
        return self.why_ended if self._load.wait(0) else ""

    def close(self) -> None:
        """Restore the tunables that vary."""
        for line in self._tuning.close():
            self._say_trouble(line)

    def knobs_of(self, point: Point) -> Knobs:
        """Return the knobs of a point."""
        return self.plan.knobs_at(self.plan.curves[point.curve], point.load)

    def job_of(self, point: Point) -> JobSpec | None:
        """Return the job of a point where settings of the job vary."""
        curve = self.plan.curves[point.curve]
        return self.plan.armed_at(curve) if any(isinstance(knob, SettingKnob) for knob, _ in curve.values) else None

    def name_of(self, point: Point) -> str:
        """Name a point by the values of its axes."""
        return self.plan.point_name(point)

    def begin_event(self) -> tuple[str, Data]:
        """Text and data of the start."""
        return begin_event(self.plan)

    def trial_event(self, curve: int, trial: Trial) -> tuple[str, Data]:
        """Text and data of a measurement."""
        return trial_event(self.plan, curve, trial)

    def end_event(self, ended: str) -> tuple[str, Data]:
        """Text and data of the end."""
        return end_event(ended)

    def result_so_far(self, ended: str) -> SweepResult:
        """Evaluate what was measured up to now, also while a call into the load hangs."""
        curves = tuple(
            CurveResult(curve, tuple(trials), answer(trials, self.plan.limits))
            for curve, trials in zip(self.plan.curves, self._trials, strict=True)
        )
        return SweepResult(self.plan, curves, ended, self.troubles, self._clock() - self._begun_s)
