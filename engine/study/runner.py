"""Takes a running load from one point of a study to the next; what comes next is up to the strategy."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from typing import ClassVar, Generic, TypeVar

from msgspec import Struct

from engine.errors import LunscopeError
from engine.job.knobs import Knobs
from engine.job.spec import JobSpec
from engine.study.events import Data, Note
from engine.study.load import EndedError, Load, NotWatched, PointWatch
from engine.study.points import LeftOut, StudyPoints

_PAUSE_S = 0.1
COMPLETE, STOPPED = "complete", "stopped"

Plan = TypeVar("Plan")
Curve = TypeVar("Curve")
Point = TypeVar("Point")
Trial = TypeVar("Trial")
Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)


class Wanted(Struct, Generic[Point, Trial], frozen=True):
    """What is measured next."""

    point: Point
    curve: int
    """Index of the curve that it belongs to."""
    measure: Callable[[], Trial]
    """Measures it; raises EndedError where it was given up, LunscopeError where it cannot be measured."""


class StudyResult(Struct, Generic[Plan, Curve], frozen=True):
    """What was measured of a plan, by curve."""

    plan: Plan
    curves: tuple[Curve, ...]
    ended: str
    """"complete", "stopped", or why the load ended."""
    troubles: tuple[str, ...]
    """Targets that failed and points that were left out, one line each."""
    elapsed_s: float

    @property
    def is_complete(self) -> bool:
        """Whether all that was wanted was measured."""
        return self.ended == COMPLETE


class StudyRunner(ABC, Generic[Point, Trial, Result]):
    """Measures what a strategy wants over a load that runs.

    `run` blocks; everything else may be called from any thread.
    """

    WHAT: ClassVar[str] = "sweep"
    """What is measured, in words of a sentence."""
    IN_HAND: ClassVar[str] = "point"
    """What is being measured."""
    NO_SKIP: ClassVar[str] = ""
    """Why nothing can be left out; empty where it can."""
    NO_KNOBS: ClassVar[str] = ""
    """Why a point has no knobs to set; empty where it has."""

    def __init__(
        self,
        load: Load,
        curves: int,
        keep: Callable[[int, Trial], None] = lambda _curve, _trial: None,
        done: Sequence[tuple[int, Trial]] = (),
        *,
        clock: Callable[[], float] = time.monotonic,
        note: Note = lambda _text, _data: None,
        watch: PointWatch | None = None,
    ) -> None:
        """Nothing is measured yet.

        Args:
            load: what is turned and measured.
            curves: how many curves there are.
            keep: takes each trial once it is measured, with the index of its curve.
            done: trials that were measured before.
            clock: seconds that only grow.
            note: takes events for the recording.
            watch: observes what is below the load while a point is measured.
        """
        self._load, self._keep, self._clock, self._note = load, keep, clock, note
        self._watch = watch or NotWatched()
        self._stop, self._go_on, self._skip = threading.Event(), threading.Event(), threading.Event()
        self._go_on.set()
        self._trials: list[list[Trial]] = [[] for _ in range(curves)]
        for curve, trial in done:
            self._trials[curve].append(trial)
        self._begun_s = clock()
        self._paused_s = 0.0
        """Time of pauses that are over."""
        self._now: Point | None = None
        self._left_out: list[LeftOut] = []
        self._troubles: list[str] = []
        self._failed: set[str] = set()
        """Targets named so far."""
        self._ended = ""
        self.failure: LunscopeError | None = None
        """What ended it; None if nothing did."""

    # ------------------------------------------------------------------ the strategy

    @abstractmethod
    def wanted(self) -> Generator[Wanted[Point, Trial]]:
        """Yield what is to be measured; asked for the next once the one before is among the trials."""

    @abstractmethod
    def failed(self, point: Point, error: LunscopeError | None) -> str:
        """Decide about a point that could not be measured, or was given up; returns why all ends, else nothing."""

    @abstractmethod
    def result_so_far(self, ended: str) -> Result:
        """Evaluate what was measured up to now, also while a call into the load hangs."""

    @abstractmethod
    def begin_event(self) -> tuple[str, Data]:
        """Text and data of the start."""

    @abstractmethod
    def trial_event(self, curve: int, trial: Trial) -> tuple[str, Data]:
        """Text and data of a trial."""

    @abstractmethod
    def end_event(self, ended: str) -> tuple[str, Data]:
        """Text and data of the end."""

    @property
    @abstractmethod
    def shown_plan(self) -> object:
        """What was asked for, as screens show it."""

    @abstractmethod
    def name_of(self, point: Point) -> str:
        """Name a point, such as "bs=4k qd=16"."""

    def knobs_of(self, point: Point) -> Knobs:
        """Return the knobs of a point, where it has any."""
        raise NotImplementedError(self.NO_KNOBS)

    def job_of(self, point: Point) -> JobSpec | None:  # noqa: ARG002 - of strategies that vary the job
        """Return the job of a point where points have different ones; None where all have that of the plan."""
        return None

    @property
    @abstractmethod
    def expected(self) -> int:
        """Trials in all, about."""

    @property
    @abstractmethod
    def left_s(self) -> float:
        """Time left, about."""

    def result_if_done(self) -> Result | None:
        """Return the result without any load where all is measured already; None where something is missing."""
        return None

    def resumed(self) -> None:
        """Go on after a pause, in which the knobs may have been turned by hand."""

    def close(self) -> None:
        """Restore what was changed beside the knobs."""

    # ------------------------------------------------------------------ how far it is

    @property
    def trials(self) -> tuple[tuple[Trial, ...], ...]:
        """What was measured up to now, by curve."""
        return tuple(map(tuple, self._trials))

    @property
    def points(self) -> StudyPoints[Point, Trial]:
        """What became of each point up to now."""
        return StudyPoints(self.trials, tuple(self._left_out), self.now)

    @property
    def how_ended(self) -> str:
        """How it ended; empty before."""
        return self._ended

    @property
    def done(self) -> int:
        """Trials made."""
        return sum(map(len, self._trials))

    @property
    def now(self) -> Point | None:
        """The point being measured; None between points."""
        return self._now

    @property
    def now_name(self) -> str:
        """Name of the point being measured; empty between points."""
        now = self._now
        return "" if now is None else self.name_of(now)

    @property
    def troubles(self) -> tuple[str, ...]:
        """Targets that failed and points that were left out, one line each."""
        return tuple(self._troubles)

    @property
    def progress_line(self) -> str:
        """Say in one line how far it is."""
        left = f"{self.left_s / 60:.0f} min" if self.left_s >= 90 else f"{self.left_s:.0f} s"
        return f"{self.done}/{self.expected} measured, about {left} left  {self.now_name}"

    # ------------------------------------------------------------------ requests

    def stop(self) -> None:
        """End it; what was measured stays."""
        self._stop.set()
        self._go_on.set()

    def pause(self) -> None:
        """Measure nothing after what is in hand until `resume`; the load goes on."""
        self._go_on.clear()

    def resume(self) -> None:
        """Go on after a pause."""
        self._go_on.set()

    @property
    def is_paused(self) -> bool:
        """Whether it pauses, or does once what is in hand is measured."""
        return not self._go_on.is_set()

    def skip(self) -> None:
        """Leave out the point in hand."""
        self._skip.set()

    def is_interrupted(self) -> bool:
        """Whether the point in hand is to be given up."""
        return self._stop.is_set() or self._skip.is_set()

    # ------------------------------------------------------------------ measuring

    def run(self) -> Result:
        """Measure all that is wanted and not done yet."""
        try:
            ended = self._run()
        finally:
            self._now = None
            self.close()
        self._ended = ended
        self._note(*self.end_event(ended))
        return self.result_so_far(ended)

    def _run(self) -> str:
        self.note_start()
        with closing(self.wanted()) as wanted:
            for each in wanted:
                ended = self._take(each) if self._wait_to_go_on() else self.why_ended
                if ended:
                    return ended
        return COMPLETE

    def note_start(self) -> None:
        """Record what is to be measured, and what was measured before this study was ended and went on."""
        self._note(*self.begin_event())
        for curve, trials in enumerate(self._trials):
            for trial in trials:
                self._note(*self.trial_event(curve, trial))

    @property
    def why_ended(self) -> str:
        """Why nothing more is measured."""
        return STOPPED if self._stop.is_set() else self._load.status.message or "the load ended"

    def _take(self, wanted: Wanted[Point, Trial]) -> str:
        """Measure one point; returns why all ends, else nothing."""
        self._skip.clear()
        self._now = wanted.point
        try:
            trial = wanted.measure()
        except EndedError:
            if self._stop.is_set() or self._load.wait(0):
                return self.why_ended
            return self.failed(wanted.point, None)
        except LunscopeError as error:
            return self.failed(wanted.point, error)
        self._trials[wanted.curve].append(trial)
        self._now = None
        self._note(*self.trial_event(wanted.curve, trial))
        self._keep(wanted.curve, trial)
        return ""

    def _wait_to_go_on(self) -> bool:
        """Wait while paused; False if it is to end."""
        paused_s, is_paused = self._clock(), self.is_paused
        while not self._go_on.wait(_PAUSE_S):
            if self._load.wait(0):
                return False
        self._paused_s += self._clock() - paused_s
        if self._stop.is_set():
            return False
        if is_paused:
            self.resumed()
        return True

    def _say_trouble(self, text: str) -> None:
        if text not in self._troubles:
            self._troubles.append(text)

    def _name_failing(self, names: Iterable[str], words: str) -> None:
        for name in sorted(set(names) - self._failed):
            self._failed.add(name)
            self._say_trouble(f"{name}: its I/Os failed {words}")
