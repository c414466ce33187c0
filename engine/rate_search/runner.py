"""Drives a running open loop through the searches of a plan and keeps what was measured."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Generator, Sequence

from msgspec import Struct

from engine.errors import LunscopeError
from engine.rate_search.answer import RateAnswers, rate_answers
from engine.rate_search.events import RecordedRates, begin_event, end_event, trial_event
from engine.rate_search.known import KnownTrials
from engine.rate_search.measure import RateMeter
from engine.rate_search.plan import RatePlan, RatePoint
from engine.rate_search.search import WantedTrial
from engine.rate_search.trial import RateTrial
from engine.study.events import Data, Note
from engine.study.load import Load, NotWatched, PointWatch
from engine.study.runner import COMPLETE, StudyRunner, Wanted


class RateCurve(Struct, frozen=True):
    """What was measured of one combination, and what it says."""

    name: str
    depth: int
    """Slots per target."""
    trials: tuple[RateTrial, ...]
    answers: RateAnswers


class RateResult(Struct, frozen=True):
    """A whole search, or as much of it as was measured."""

    plan: RatePlan
    curves: tuple[RateCurve, ...]
    ended: str
    """"complete", "stopped", or why the load ended."""
    troubles: tuple[str, ...]
    elapsed_s: float

    @property
    def is_complete(self) -> bool:
        """Whether every limit was decided as far as it can be."""
        return self.ended == COMPLETE


class RateRunner(StudyRunner[RatePoint, RateTrial, RateResult]):
    """Searches rates until every limit of every combination is decided."""

    def __init__(
        self,
        plan: RatePlan,
        load: Load,
        keep: Callable[[int, RateTrial], None] = lambda _curve, _trial: None,
        done: Sequence[tuple[int, RateTrial]] = (),
        *,
        clock: Callable[[], float] = time.monotonic,
        note: Note = lambda _text, _data: None,
        watch: PointWatch | None = None,
    ) -> None:
        super().__init__(load, len(plan.curves), keep, done, clock=clock, note=note)
        self._plan = plan
        self._start_s = self._begun_s - max((trial.start_s + trial.duration_s for _, trial in done), default=0.0)
        self._meter = RateMeter(load, plan.limits, self._stop.is_set, clock, watch or NotWatched())

    @property
    def expected(self) -> int:
        """Each trial decides whether another follows: those made."""
        return self.done

    @property
    def left_s(self) -> float:
        """Time left on a steady device."""
        return max(self._plan.expected_s - (self._clock() - self._start_s - self._paused_s), 0.0)

    @property
    def progress_line(self) -> str:
        """Say in one line how far it is."""
        left_s, now = self.left_s, self.now
        left = f", about {left_s:.0f} s left" if left_s >= 1 else ""
        return f"{self.done} trials{left}  rate {0.0 if now is None else now.rate:,.0f}"

    def wanted(self) -> Generator[Wanted[RatePoint, RateTrial]]:
        """Take one combination after the other."""
        for curve, trials in enumerate(self._trials):
            known = KnownTrials()
            while (trial := self._plan.next_trial(curve, trials, known)) is not None:
                point = RatePoint(curve, trial.rate)
                yield Wanted(point, curve, functools.partial(self._measure, point, trial))

    def _measure(self, point: RatePoint, wanted: WantedTrial) -> RateTrial:
        trial = self._meter.measure(self._plan.knobs_at(point.curve, point.rate), wanted, self._start_s)
        self._name_failing(trial.failing, f"at {point.rate:,.0f} IOPS; they count as over every limit")
        return trial

    def failed(self, _point: RatePoint, error: LunscopeError | None) -> str:
        """End: each trial decides which rate comes next."""
        return self.why_ended if error is None else str(error)

    def resumed(self) -> None:
        """Turn the knobs again."""
        self._meter.forget_knobs()

    def name_of(self, point: RatePoint) -> str:
        """Name a rate with its combination."""
        return self._plan.point_name(point)

    def begin_event(self) -> tuple[str, Data]:
        """Text and data of the start."""
        return begin_event(self._plan)

    def trial_event(self, curve: int, trial: RateTrial) -> tuple[str, Data]:
        """Text and data of a trial."""
        return trial_event(self._plan, curve, trial)

    def end_event(self, ended: str) -> tuple[str, Data]:
        """Text and data of the end."""
        return end_event(self._plan, ended)

    def result_so_far(self, ended: str) -> RateResult:
        """Evaluate what was measured up to now, also while a call into the load hangs."""
        curves = tuple(
            RateCurve(name, knobs.queue_depth, tuple(trials), rate_answers(self._plan.search, tuple(trials)))
            for (name, knobs), trials in zip(self._plan.curves, self._trials, strict=True)
        )
        return RateResult(self._plan, curves, ended, self.troubles, self._clock() - self._begun_s)


def recorded_result(found: RecordedRates) -> RateResult:
    """Evaluate a recorded search again."""
    curves = tuple(
        RateCurve(name, knobs.queue_depth, trials, rate_answers(found.plan.search, trials))
        for (name, knobs), trials in zip(found.plan.curves, found.trials, strict=True)
    )
    return RateResult(found.plan, curves, found.ended or "it went on", (), 0.0)
