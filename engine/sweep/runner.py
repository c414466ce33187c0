"""Drives a running load over the points of a plan and keeps what was measured."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from engine.errors import LunscopeError
from engine.study.load import EndedError, Load, NotWatched, PointWatch
from engine.sweep.events import begin_event, end_event, left_out_event, trial_event
from engine.sweep.interruptible import SkippingPoints
from engine.sweep.knee import Answer, answer
from engine.sweep.measure import PointMeter
from engine.sweep.plan import Curve, SweepPlan
from engine.sweep.points import LeftOut, Point, SweepPoints
from engine.sweep.trial import SearchStage, Trial
from engine.sweep.tuning import SweepTuning

_PAUSE_S = 0.1

Note = Callable[[str, Mapping[str, str | float | None]], None]
"""Takes text and data of an event of the session."""


class CurveResult(Struct, frozen=True):
    """What was measured of one curve, and what it says."""

    curve: Curve
    trials: tuple[Trial, ...]
    answer: Answer


class SweepResult(Struct, frozen=True):
    """A whole sweep, or as much of it as was measured."""

    plan: SweepPlan
    curves: tuple[CurveResult, ...]
    ended: str
    """"complete", "stopped", or why the load ended."""
    troubles: tuple[str, ...]
    """Targets that failed and points that were left out, one line each."""
    elapsed_s: float

    @property
    def is_complete(self) -> bool:
        """Whether every point that was wanted was measured."""
        return self.ended == "complete"


class SweepProgress(Struct, frozen=True):
    """Where a sweep stands."""

    done: int
    expected: int
    left_s: float
    point: str
    """Being measured, such as "bs=4k qd=16"; empty between points."""
    is_paused: bool = False


class _Log(Struct):
    """Trials by curve, and what went wrong."""

    trials: list[list[Trial]]
    troubles: list[str] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)
    """Targets named so far."""

    def note(self, text: str) -> None:
        if text not in self.troubles:
            self.troubles.append(text)


class SweepRunner(SkippingPoints):
    """Measures a plan over a load that runs; `run` blocks, everything else may be called from any thread."""

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
        super().__init__()
        self._plan, self._load, self._keep, self._clock, self._note = plan, load, keep, clock, note
        self._tuning = SweepTuning(plan) if tuning is None else tuning
        self._log = _Log([[] for _ in plan.curves])
        for index, trial in done:
            self._log.trials[index].append(trial)
        self._resumed = len(done)
        before_s = max((trial.start_s + trial.duration_s for _, trial in done), default=0.0)
        self._start_s = clock() - before_s
        self._begun_s = clock()
        self._measuring: Point | None = None
        self._meter = PointMeter(
            load,
            plan.rule,
            lambda: self._stop.is_set() or self._skip.is_set(),
            clock,
            watch or NotWatched(),
            drops_cache=any(axis.knob.id == "mode" for axis in plan.axes),
        )

    @property
    def progress(self) -> SweepProgress:
        """Where it stands now."""
        done = sum(map(len, self._log.trials))
        expected = max(self._plan.trials, done)
        measured = done - self._resumed
        usual_s = self._plan.expected_s[0] / max(self._plan.trials, 1)
        each_s = (self._clock() - self._begun_s) / measured if measured else usual_s
        at = self._measuring
        name = "" if at is None else self._plan.point_name(at)
        return SweepProgress(done, expected, (expected - done) * each_s, name, self.is_paused)

    @property
    def points(self) -> SweepPoints:
        """What became of each point up to now."""
        return SweepPoints(tuple(map(tuple, self._log.trials)), tuple(self._log.left_out), self._measuring)

    @property
    def troubles(self) -> tuple[str, ...]:
        """Targets that failed and points that were left out, one line each."""
        return tuple(self._log.troubles)

    def run(self) -> SweepResult:
        """Measure all points that are not done yet, and restore the tunables that vary."""
        try:
            ended = self._run()
        finally:
            for line in self._tuning.close():
                self._log.note(line)
        self._note(*end_event(ended))
        return self.result_so_far(ended)

    def _run(self) -> str:
        ended = "complete"
        self._note_start()
        for curve, load, stage in self._wanted():
            if not self._wait_to_go_on():
                ended = "stopped"
                break
            if not self._measure(curve, load, stage):
                ended = "stopped" if self._stop.is_set() else self._load.status.message or "the load ended"
                break
        self._measuring = None
        return ended

    def result_if_done(self) -> SweepResult | None:
        """Return the result without any load where all points are measured already; None where some are not."""
        if next(self._wanted(), None) is not None:
            return None
        self._note_start()
        self._note(*end_event("complete"))
        return self.result_so_far("complete")

    def _note_start(self) -> None:
        """Record what is to be measured, and what was before this sweep was ended and went on."""
        self._note(*begin_event(self._plan))
        for curve, trials in enumerate(self._log.trials):
            for trial in trials:
                self._note(*trial_event(self._plan, curve, trial))

    def _wanted(self) -> Iterator[tuple[Curve, int, SearchStage]]:
        for stage in SearchStage:
            points = (
                (curve, load, stage)
                for curve in self._plan.curves
                for load in curve.search.wanted(stage, self._log.trials[curve.index])
            )
            if stage is SearchStage.REPEAT:
                # Over all curves: what drifts must not look like the effect of an axis.
                shuffled = list(points)
                random.Random(self._plan.job.seed).shuffle(shuffled)  # noqa: S311 (order, not secrets)
                yield from shuffled
            else:
                yield from points

    def _wait_to_go_on(self) -> bool:
        """Wait while paused; False if the sweep is to end."""
        while not self._go_on.wait(_PAUSE_S):
            if self._load.wait(0):
                return False
        return not self._stop.is_set()

    def _measure(self, curve: Curve, load: int, stage: SearchStage) -> bool:
        """Measure one point; False if the sweep is over."""
        self._measuring = at = Point(curve.index, load)
        self._skip.clear()
        try:
            self._tuning.set(curve)
            trial = self._meter.measure(self._plan.knobs_at(curve, load), load, stage, self._start_s)
        except EndedError:
            if self._stop.is_set() or self._load.wait(0):
                return False
            self._leave_out(at, "" if self._skip.is_set() else "stopped meanwhile")
            return True
        except LunscopeError as error:
            self._leave_out(at, str(error))
            return not self._load.wait(0)
        for name in sorted(set(trial.failing) - self._log.failed):
            self._log.failed.add(name)
            point = self._plan.point_name(at)
            self._log.note(f"{name}: its I/Os failed from {point} on; points with it are not in the curve")
        self._log.trials[curve.index].append(trial)
        self._measuring = None
        self._note(*trial_event(self._plan, curve.index, trial))
        self._keep(curve.index, trial)
        return True

    def _leave_out(self, at: Point, reason: str) -> None:
        left_out, self._measuring = LeftOut(at, reason), None
        self._log.left_out.append(left_out)
        self._log.note(f"{self._plan.point_name(at)}: left out" + (f": {reason}" if reason else ""))
        self._note(*left_out_event(self._plan, left_out))

    def result_so_far(self, ended: str) -> SweepResult:
        """Evaluate what was measured up to now, also while a call into the load hangs."""
        curves = tuple(
            CurveResult(curve, tuple(trials), answer(trials, self._plan.limits))
            for curve, trials in zip(self._plan.curves, self._log.trials, strict=True)
        )
        return SweepResult(self._plan, curves, ended, tuple(self._log.troubles), self._clock() - self._begun_s)
