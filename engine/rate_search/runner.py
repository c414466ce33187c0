"""Drives a running open loop through the searches of a plan and keeps what was measured."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Generator, Sequence

import numpy as np
from msgspec import Struct, field

from engine.errors import LunscopeError
from engine.job.spec import Knobs
from engine.rate_search.answer import RateAnswers, rate_answers
from engine.rate_search.events import RecordedRates, begin_event, end_event, trial_event
from engine.rate_search.known import KnownTrials
from engine.rate_search.plan import RatePlan, RatePoint
from engine.rate_search.search import WantedTrial
from engine.rate_search.trial import Arrivals, RateTrial, excess_share
from engine.replacing import replace
from engine.results.measured import Measured
from engine.results.result import EpochResult
from engine.running.counter_reader import ERRORS, FAILING, IOS, SKIPPED
from engine.study.events import Data, Note
from engine.study.load import EndedError, Load, NotWatched, PointWatch
from engine.study.runner import StudyResult, StudyRunner, Wanted
from engine.sweep.limit import Limit


class RateCurve(Struct, frozen=True):
    """What was measured of one combination, and what it says."""

    name: str
    depth: int
    """Slots per target."""
    trials: tuple[RateTrial, ...]
    answers: RateAnswers


class RateResult(StudyResult[RatePlan, RateCurve], frozen=True):
    """A whole search, or as much of it as was measured."""


class RateRunner(StudyRunner[RatePoint, RateTrial, RateResult]):
    """Searches rates until every limit of every combination is decided."""

    WHAT = "search for a rate"
    IN_HAND = "trial"
    NO_SKIP = "a search has no trials to skip: each decides which rate comes next"

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
        super().__init__(load, len(plan.curves), keep, done, clock=clock, note=note, watch=watch)
        self.plan = plan
        self._start_s = self._begun_s - max((trial.start_s + trial.duration_s for _, trial in done), default=0.0)
        self._meter = RateMeter(load, plan.limits, self._stop.is_set, clock, self._watch)

    @property
    def shown_plan(self) -> RatePlan:
        """What was asked for."""
        return self.plan

    @property
    def expected(self) -> int:
        """Each trial decides whether another follows: those made."""
        return self.done

    @property
    def left_s(self) -> float:
        """Time left on a steady device."""
        return max(self.plan.expected_s - (self._clock() - self._start_s - self._paused_s), 0.0)

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
            while (trial := self.plan.next_trial(curve, trials, known)) is not None:
                point = RatePoint(curve, trial.rate)
                yield Wanted(point, curve, functools.partial(self._measure, point, trial))

    def _measure(self, point: RatePoint, wanted: WantedTrial) -> RateTrial:
        trial = self._meter.measure(self.plan.knobs_at(point.curve, point.rate), wanted, self._start_s)
        self._name_failing(trial.failing, f"at {point.rate:,.0f} IOPS; they count as over every limit")
        return trial

    def failed(self, _point: RatePoint, error: LunscopeError | None) -> str:
        """End: each trial decides which rate comes next."""
        return self.why_ended if error is None else str(error)

    def resumed(self) -> None:
        """Turn the knobs again."""
        self._meter.forget_knobs()

    def knobs_of(self, point: RatePoint) -> Knobs:
        """Return the knobs of a rate."""
        return self.plan.knobs_at(point.curve, point.rate)

    def name_of(self, point: RatePoint) -> str:
        """Name a rate with its combination."""
        return self.plan.point_name(point)

    def begin_event(self) -> tuple[str, Data]:
        """Text and data of the start."""
        return begin_event(self.plan)

    def trial_event(self, curve: int, trial: RateTrial) -> tuple[str, Data]:
        """Text and data of a trial."""
        return trial_event(self.plan, curve, trial)

    def end_event(self, ended: str) -> tuple[str, Data]:
        """Text and data of the end."""
        return end_event(self.plan, ended)

    def result_so_far(self, ended: str) -> RateResult:
        """Evaluate what was measured up to now, also while a call into the load hangs."""
        curves = tuple(
            RateCurve(name, knobs.queue_depth, tuple(trials), rate_answers(self.plan.search, tuple(trials)))
            for (name, knobs), trials in zip(self.plan.curves, self._trials, strict=True)
        )
        return RateResult(self.plan, curves, ended, self.troubles, self._clock() - self._begun_s)


def recorded_result(found: RecordedRates) -> RateResult:
    """Evaluate a recorded search again."""
    curves = tuple(
        RateCurve(name, knobs.queue_depth, trials, rate_answers(found.plan.search, trials))
        for (name, knobs), trials in zip(found.plan.curves, found.points.trials, strict=True)
    )
    return RateResult(found.plan, curves, found.ended or "it went on", (), 0.0)


_POLL_S = 0.02
_SETTLE_S = 0.2
"""Time from a turn to the trial: what waited at the rate before is served by then."""
_GAP_S = 2.0
"""A longer time without a poll means that the process or the machine was stopped; the trial begins again."""
_PATIENCE_S = 10.0
"""How much longer than wanted a trial may last because I/Os of the one before do not return."""
_ATTEMPTS = 3
_PERCENTILES = (("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p99.9", 99.9))


class _TrialGapError(Exception):
    """The trial is worth nothing."""


class _Counts(Struct, frozen=True):
    """Counters that no epoch has in the result so far.

    Its I/Os are those that were due and completed in it: fewer than completed by all those that are outstanding.
    """

    at_s: float
    ios: int
    """Completed, whenever they were due; parts, where I/Os are cut or copied."""
    errors: int
    skipped: int
    failing: frozenset[int]


class RateMeter(Struct):
    """Measures trials of a running open loop."""

    load: Load
    limits: tuple[Limit, ...]
    ended: Callable[[], bool]
    """Whether to give the trial up."""
    clock: Callable[[], float] = time.monotonic
    watch: PointWatch = field(default_factory=NotWatched)
    _knobs: Knobs | None = None

    def measure(self, knobs: Knobs, wanted: WantedTrial, search_start_s: float) -> RateTrial:
        """Measure one trial; blocks. Trials at the same rate follow each other without a turn, as one would wait.

        Raises:
            EndedError: it was given up, or the load ended.
            LunscopeError: the knobs are refused.
        """
        start_s = self.clock()
        for _ in range(_ATTEMPTS):
            try:
                self._turn(knobs)
                return self._trial(wanted, start_s - search_start_s)
            except _TrialGapError:
                self._knobs = None
        raise EndedError

    def forget_knobs(self) -> None:
        """Turn the knobs again before the next trial, as they may have been turned meanwhile."""
        self._knobs = None

    def _turn(self, knobs: Knobs) -> None:
        if knobs == self._knobs:
            return
        self.load.turn(knobs)
        self._knobs = knobs
        self._wait(_SETTLE_S)

    def _trial(self, wanted: WantedTrial, start_s: float) -> RateTrial:
        self.watch.begin()
        self.load.part_epoch()
        parted_s = self.clock()
        while self._epoch().duration_s == 0 and self.clock() - parted_s < _PATIENCE_S:
            self._wait(_POLL_S)
        before = self._counts()
        while (epoch := self._epoch()).duration_s < wanted.duration_s:
            if self.clock() - before.at_s > wanted.duration_s + _PATIENCE_S:
                break
            self._wait(max(wanted.duration_s - epoch.duration_s, _POLL_S))
        trial = self._evaluated(wanted, epoch, before, self._counts(), start_s)
        return replace(trial, devices=self.watch.end())

    def _wait(self, seconds: float) -> None:
        until_s = last_s = self.clock()
        until_s += seconds
        while last_s < until_s:
            if self.ended() or self.load.wait(_POLL_S):
                raise EndedError
            now_s = self.clock()
            if now_s - last_s > _GAP_S:
                raise _TrialGapError
            last_s = now_s

    def _epoch(self) -> EpochResult:
        epoch = self.load.last_epoch()
        if epoch is None:
            raise EndedError
        return epoch

    def _counts(self) -> _Counts:
        counters = self.load.peek()
        if counters is None:
            raise EndedError
        failing = frozenset(np.flatnonzero(counters[:, FAILING]).tolist())
        totals = counters.sum(axis=0)
        return _Counts(self.clock(), int(totals[IOS].sum()), int(totals[ERRORS]), int(totals[SKIPPED]), failing)

    def _evaluated(
        self, wanted: WantedTrial, epoch: EpochResult, before: _Counts, after: _Counts, start_s: float
    ) -> RateTrial:
        total = epoch.split.total if epoch.logical is None else epoch.logical.split.total
        # An epoch that never opened, as old I/Os did not return, has measured for as long as was waited.
        duration_s = max(epoch.duration_s, wanted.duration_s)
        elapsed_s = max(after.at_s - before.at_s, _POLL_S)
        whole_ios = total.ios / epoch.split.total.ios if epoch.split.total.ios else 1.0
        iops = (after.ios - before.ios) * whole_ios / elapsed_s
        arrivals = Arrivals(
            wanted.rate, duration_s, max(after.skipped - before.skipped, 0), max(after.errors - before.errors, 0)
        )
        names = self.load.status.targets
        return RateTrial(
            rate=wanted.rate,
            duration_s=duration_s,
            iops=iops,
            ios=total.ios,
            skipped=arrivals.skipped,
            errors=arrivals.errors,
            latencies_ns=_latencies(total),
            excess={limit.text: excess_share(limit, total, arrivals) for limit in self.limits},
            is_sustained=arrivals.is_carried_by(iops),
            bytes_per_s=iops * total.bytes / total.ios if total.ios else 0.0,
            start_s=start_s,
            stage=wanted.stage.value,
            failing=tuple(names[index] for index in sorted(before.failing | after.failing)),
            host_busy_pct=None if epoch.cpu is None else epoch.cpu.host_busy_pct,
        )


def _latencies(total: Measured) -> dict[str, float]:
    known = {name: total.percentile_ns(percent) for name, percent in _PERCENTILES}
    known |= {"mean": total.mean_ns, "max": total.largest_ns}
    return {name: float(value) for name, value in known.items() if value is not None}
