"""Drives a running open loop through the searches of a plan and keeps what was measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from engine.errors import LunscopeError
from engine.rate_search.answer import RateAnswers, rate_answers
from engine.rate_search.events import RecordedRates, begin_event, end_event, trial_event
from engine.rate_search.known import KnownTrials
from engine.rate_search.measure import RateMeter
from engine.rate_search.plan import RatePlan
from engine.rate_search.search import WantedTrial
from engine.rate_search.trial import RateTrial
from engine.study.load import EndedError, Load, NotWatched, PointWatch
from engine.sweep.interruptible import Interruptible

_PAUSE_S = 0.1

Note = Callable[[str, Mapping[str, str | float | None]], None]
"""Takes text and data of an event of the session."""


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
        return self.ended == "complete"


class RateProgress(Struct, frozen=True):
    """Where a search stands."""

    done: int
    """Trials."""
    left_s: float
    rate: float
    """Being tried; 0 between trials."""
    curve: int = 0
    """Index of the combination that is searched."""
    is_paused: bool = False


class RateRunner(Interruptible):
    """Searches over a load that runs; `run` blocks, everything else may be called from any thread."""

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
        super().__init__()
        self._plan, self._load, self._keep, self._clock, self._note = plan, load, keep, clock, note
        self._trials: list[list[RateTrial]] = [[] for _ in plan.curves]
        for index, trial in done:
            self._trials[index].append(trial)
        self._begun_s = clock()
        self._start_s = self._begun_s - max((trial.start_s + trial.duration_s for _, trial in done), default=0.0)
        self._paused_s = 0.0
        """Time of pauses that are over."""
        self._rate, self._curve = 0.0, 0
        self._troubles: list[str] = []
        self._failed: set[str] = set()
        self._meter = RateMeter(load, plan.limits, self._stop.is_set, clock, watch or NotWatched())

    @property
    def progress(self) -> RateProgress:
        """Where it stands now."""
        done = sum(map(len, self._trials))
        left_s = self._plan.expected_s - (self._clock() - self._start_s - self._paused_s)
        return RateProgress(done, max(left_s, 0.0), self._rate, self._curve, self.is_paused)

    @property
    def trials(self) -> tuple[tuple[RateTrial, ...], ...]:
        """What was measured up to now, by combination."""
        return tuple(map(tuple, self._trials))

    @property
    def troubles(self) -> tuple[str, ...]:
        """Targets that failed, one line each."""
        return tuple(self._troubles)

    def run(self) -> RateResult:
        """Search until every limit of every combination is decided."""
        self._note_start()
        ended = "complete"
        for curve, trials in enumerate(self._trials):
            self._curve, known = curve, KnownTrials()
            while (wanted := self._plan.next_trial(curve, trials, known)) is not None:
                trouble = self._measure(curve, wanted) if self._wait_to_go_on() else self._why_ended()
                if trouble:
                    ended = trouble
                    break
            if ended != "complete":
                break
        self._rate = 0.0
        self._note(*end_event(self._plan, ended))
        return self.result_so_far(ended)

    def _note_start(self) -> None:
        """Record what is searched, and what was measured before this search was ended and went on."""
        self._note(*begin_event(self._plan))
        for curve, trials in enumerate(self._trials):
            for trial in trials:
                self._note(*trial_event(self._plan, curve, trial))

    def _wait_to_go_on(self) -> bool:
        """Wait while paused; False if the search is to end."""
        paused_s = self._clock()
        if self.is_paused:
            # The knobs may be turned by hand meanwhile.
            self._rate = 0.0
            self._meter.forget_knobs()
        while not self._go_on.wait(_PAUSE_S):
            if self._load.wait(0):
                return False
        self._paused_s += self._clock() - paused_s
        return not self._stop.is_set()

    def _why_ended(self) -> str:
        return "stopped" if self._stop.is_set() else self._load.status.message or "the load ended"

    def _measure(self, curve: int, wanted: WantedTrial) -> str:
        """Measure one trial; returns why the search is over, else nothing."""
        self._rate = wanted.rate
        try:
            trial = self._meter.measure(self._plan.knobs_at(curve, wanted.rate), wanted, self._start_s)
        except EndedError:
            return self._why_ended()
        except LunscopeError as error:
            return str(error)
        for name in sorted(set(trial.failing) - self._failed):
            self._failed.add(name)
            self._troubles.append(f"{name}: its I/Os failed at {wanted.rate:,.0f} IOPS; they count as over every limit")
        self._trials[curve].append(trial)
        self._note(*trial_event(self._plan, curve, trial))
        self._keep(curve, trial)
        return ""

    def result_so_far(self, ended: str) -> RateResult:
        """Evaluate what was measured up to now, also while a call into the load hangs."""
        curves = tuple(
            RateCurve(name, knobs.queue_depth, tuple(trials), rate_answers(self._plan.search, tuple(trials)))
            for (name, knobs), trials in zip(self._plan.curves, self._trials, strict=True)
        )
        return RateResult(self._plan, curves, ended, tuple(self._troubles), self._clock() - self._begun_s)


def recorded_result(found: RecordedRates) -> RateResult:
    """Evaluate a recorded search again."""
    curves = tuple(
        RateCurve(name, knobs.queue_depth, trials, rate_answers(found.plan.search, trials))
        for (name, knobs), trials in zip(found.plan.curves, found.trials, strict=True)
    )
    return RateResult(found.plan, curves, found.ended or "it went on", (), 0.0)
