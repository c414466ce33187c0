"""Drives a running open loop through the searches of a plan and keeps what was measured."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from engine.errors import LunscopeError
from engine.rate_search.answer import RateAnswers, rate_answers
from engine.rate_search.measure import RateMeter
from engine.rate_search.plan import RatePlan
from engine.rate_search.search import WantedTrial
from engine.rate_search.trial import RateTrial
from engine.sweep.measure import EndedError, Load
from engine.sweep.watch import NotWatched, PointWatch

Note = Callable[[str, Mapping[str, str | float | None]], None]
"""Takes text and data of an event of the session."""


@dataclass(frozen=True, slots=True)
class RateCurve:
    """What was measured of one combination, and what it says."""

    name: str
    depth: int
    """Slots per target."""
    trials: tuple[RateTrial, ...]
    answers: RateAnswers


@dataclass(frozen=True, slots=True)
class RateResult:
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


@dataclass(frozen=True, slots=True)
class RateProgress:
    """Where a search stands."""

    done: int
    """Trials."""
    left_s: float
    rate: float
    """Being tried; 0 between trials."""


class RateRunner:
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
        self._plan, self._load, self._keep, self._clock, self._note = plan, load, keep, clock, note
        self._trials: list[list[RateTrial]] = [[] for _ in plan.curves]
        for index, trial in done:
            self._trials[index].append(trial)
        self._begun_s = clock()
        self._start_s = self._begun_s - max((trial.start_s + trial.duration_s for _, trial in done), default=0.0)
        self._stop = threading.Event()
        self._rate = 0.0
        self._troubles: list[str] = []
        self._failed: set[str] = set()
        self._meter = RateMeter(load, plan.limits, self._stop.is_set, clock, watch or NotWatched())

    def stop(self) -> None:
        """End the search; what was measured stays."""
        self._stop.set()

    @property
    def progress(self) -> RateProgress:
        """Where it stands now."""
        left_s = self._plan.expected_s - (self._clock() - self._start_s)
        return RateProgress(sum(map(len, self._trials)), max(left_s, 0.0), self._rate)

    def run(self) -> RateResult:
        """Search until every limit of every combination is decided."""
        limits = ", ".join(limit.text for limit in self._plan.limits)
        begun = f"search for the highest rate with {limits}" if limits else self._plan.words
        self._note(begun, {"rate_search": "begin", "limits": limits})
        ended = "complete"
        for curve, trials in enumerate(self._trials):
            while (wanted := self._plan.next_trial(curve, trials)) is not None:
                trouble = "stopped" if self._stop.is_set() else self._measure(curve, wanted)
                if trouble:
                    ended = trouble
                    break
            if ended != "complete":
                break
        self._rate = 0.0
        self._note(
            f"{'search for the highest rate' if limits else 'open loop'}: {ended}", {"rate_search": "end", "how": ended}
        )
        return self.result_so_far(ended)

    def _measure(self, curve: int, wanted: WantedTrial) -> str:
        """Measure one trial; returns why the search is over, else nothing."""
        self._rate = wanted.rate
        try:
            trial = self._meter.measure(self._plan.knobs_at(curve, wanted.rate), wanted, self._start_s)
        except EndedError:
            return "stopped" if self._stop.is_set() else self._load.status.message or "the load ended"
        except LunscopeError as error:
            return str(error)
        for name in sorted(set(trial.failing) - self._failed):
            self._failed.add(name)
            self._troubles.append(f"{name}: its I/Os failed at {wanted.rate:,.0f} IOPS; they count as over every limit")
        self._trials[curve].append(trial)
        self._keep(curve, trial)
        self._note_trial(curve, trial)
        return ""

    def _note_trial(self, curve: int, trial: RateTrial) -> None:
        verdicts = ", ".join(
            f"{limit.text} {'kept' if trial.keeps(limit) else 'exceeded'}" for limit in self._plan.limits
        )
        name = self._plan.curves[curve][0]
        data: dict[str, str | float | None] = {
            "rate_search": "trial",
            "curve": curve,
            "trial": json.dumps(asdict(replace(trial, devices=None)), allow_nan=False),
        }
        text = f"{name} rate {trial.rate:,.0f}: {trial.iops:,.0f} IOPS{verdicts and f', {verdicts}'}"
        self._note(text.strip(), data)

    def result_so_far(self, ended: str) -> RateResult:
        """Evaluate what was measured up to now, also while a call into the load hangs."""
        curves = tuple(
            RateCurve(name, knobs.queue_depth, tuple(trials), rate_answers(self._plan.search, tuple(trials)))
            for (name, knobs), trials in zip(self._plan.curves, self._trials, strict=True)
        )
        return RateResult(self._plan, curves, ended, tuple(self._troubles), self._clock() - self._begun_s)
