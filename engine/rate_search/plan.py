"""What a search for rates is to find: its limits, its range, and the jobs that it is done for."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct, field

from engine.errors import UsageError
from engine.job.knobs import Knobs
from engine.job.limits import MAX_ARRIVALS_PER_S, MAX_THREADS
from engine.job.sizes import format_number
from engine.job.spec import Arrival, Backend, JobSpec
from engine.job.validate import validate
from engine.rate_search.goal import RateGoal
from engine.rate_search.known import KnownTrials
from engine.rate_search.search import FIRST_RATE, RateSearch, WantedTrial
from engine.rate_search.trial import RATE_TRIALS, RateStage, RateTrial
from engine.replacing import replace
from engine.study.trial_file import TrialKind
from engine.sweep.limit import Limit

DEPTH = 128
"""Slots per target where none are asked for: arrivals seldom wait for one below the maximum of most devices."""
_USUAL_S = 55.0
"""Time for one limit on a steady device, measured with the model of the tests."""
_NOISY = 2.5
_LEAST_STEP_S = 2.0
_MOST_STEP_S = 20.0
_STEP_IOS = 2000
"""I/Os of a step: 20 of them are beyond p99."""
_RANGE = re.compile(r"\s*rate\s*=\s*([0-9.e+]{0,18})\s*\.\.\s*([0-9.e+]{0,18})\s*", re.ASCII)


class RateRange(Struct, frozen=True):
    """Rates between which to search; None: as far as the load goes."""

    low: float | None = None
    high: float | None = None

    @property
    def text(self) -> str:
        """As it is typed."""
        low, high = ("" if each is None else format_number(each) for each in (self.low, self.high))
        return f"rate={low}..{high}"


def parse_rate_range(text: str) -> RateRange | None:
    """Read `rate=1000..50000`, `rate=..50000` or `rate=..`; None where it is another axis.

    Raises:
        UsageError: it is a range of rates that cannot be.
    """
    match = _RANGE.fullmatch(text)
    if match is None:
        return None
    try:
        low, high = (float(part) if part else None for part in match.groups())
    except ValueError:
        raise UsageError(f"--vary {text!r}: write it like rate=1000..50000, or rate=.. for all rates") from None
    if any(each is not None and not 0 < each <= MAX_ARRIVALS_PER_S for each in (low, high)):
        raise UsageError(f"--vary {text!r}: out of range: above 0, up to {MAX_ARRIVALS_PER_S} I/Os per second")
    if low is not None and high is not None and low >= high:
        raise UsageError(f"--vary {text!r}: a range goes upwards")
    return RateRange(low, high)


class RatePoint(Struct, frozen=True, order=True):
    """A rate of a combination."""

    curve: int
    rate: float


class RateSteps(Struct, frozen=True):
    """One trial at each of some rates, without a search."""

    rates: tuple[tuple[float, ...], ...]
    """Rates of each combination, ascending."""

    def next_trial(self, curve: int, trials: Sequence[RateTrial]) -> WantedTrial | None:
        """Take the rates in their order."""
        done = {trial.rate for trial in trials}
        rate = next((rate for rate in self.rates[curve] if rate not in done), None)
        return None if rate is None else WantedTrial(rate, _step_s(rate), RateStage.STEP)

    @property
    def expected_s(self) -> float:
        """Time on any device: each trial has a length of its own."""
        return sum(_step_s(rate) + 0.5 for rates in self.rates for rate in rates)


def _step_s(rate: float) -> float:
    return min(max(_STEP_IOS / rate, _LEAST_STEP_S), _MOST_STEP_S)


class RatePlan(Struct, frozen=True):
    """A search for each combination of the other axes, over one open-loop job."""

    job: JobSpec
    search: RateSearch
    curves: tuple[tuple[str, Knobs], ...]
    """Name, such as "bs=4k", and knobs of each combination; one without a name if nothing else varies."""
    range: RateRange = field(default_factory=RateRange)
    steps: RateSteps | None = None
    """What is measured instead of a search."""

    def next_trial(
        self, curve: int, trials: Sequence[RateTrial], known: KnownTrials | None = None
    ) -> WantedTrial | None:
        """Choose the next trial of a combination; None when it is done."""
        steps = self.steps
        return self.search.next_trial(trials, known) if steps is None else steps.next_trial(curve, trials)

    def knobs_at(self, curve: int, rate: float) -> Knobs:
        """Knobs of a trial."""
        return replace(self.curves[curve][1], rate_iops=rate)

    def point_name(self, point: RatePoint) -> str:
        """Such as "bs=4k rate=12,340/s"."""
        return f"{self.curves[point.curve][0]} rate={point.rate:,.0f}/s".strip()

    @property
    def limits(self) -> tuple[Limit, ...]:
        """What the rates must keep."""
        return self.search.limits

    @property
    def first(self) -> Knobs:
        """Knobs of the first trial."""
        highest = self.range.high or FIRST_RATE
        return self.knobs_at(0, min(FIRST_RATE, highest) if self.steps is None else self.steps.rates[0][0])

    @property
    def armed(self) -> JobSpec:
        """The job as it is armed."""
        return replace(self.job, knobs=self.first)

    @property
    def least_read_pct(self) -> float:
        """The lowest share of reads of all combinations."""
        return min(knobs.read_pct for _, knobs in self.curves)

    @property
    def trial_kind(self) -> TrialKind[RateTrial]:
        """How its trials are kept."""
        return RATE_TRIALS

    @property
    def curve_count(self) -> int:
        """Number of combinations."""
        return len(self.curves)

    @property
    def known_by(self) -> tuple[object, ...]:
        """Whatever makes trials of another search useless for this one."""
        return self.job, self.search if self.steps is None else self.steps.rates, self.curves

    @property
    def expected_s(self) -> float:
        """Time on a steady device."""
        if self.steps is not None:
            return self.steps.expected_s
        return _USUAL_S * len(self.curves) * (1 + 0.35 * (len(self.limits) - 1))

    @property
    def words(self) -> str:
        """How much it is, in one line."""
        if self.steps is not None:
            count = sum(map(len, self.steps.rates))
            return f"open loop at {count} rates: {self.job.arrival} arrivals, about {self.expected_s:.0f} s"
        limits, depth = " and ".join(limit.text for limit in self.limits), self.curves[0][1].queue_depth
        times = f" for each of {len(self.curves)} combinations" if len(self.curves) > 1 else ""
        return (
            f"highest rate with {limits}{times}: {self.job.arrival} arrivals, up to QD {depth} per target, "
            f"about {self.expected_s / 60:.0f} min (up to {_NOISY * self.expected_s / 60:.0f} min on a noisy device)"
        )


def make_rate_plan(
    job: JobSpec,
    limits: Sequence[Limit],
    goal: RateGoal | None = None,
    rates: RateRange | None = None,
    curves: Sequence[tuple[str, Knobs]] = (),
) -> RatePlan:
    """Make an open loop of a job; arrivals are Poisson where the job does not say.

    Raises:
        UsageError: no limits, the same one twice, or a job that cannot have arrivals.
    """
    if not limits:
        raise UsageError("a search for a rate needs a limit: give --slo, such as --slo 'p99<=5ms'")
    if len(set(limits)) < len(limits):
        raise UsageError("--slo: a limit comes twice: give each once")
    if job.knobs.rate_iops is not None:
        raise UsageError("--rate: the search chooses it: leave it out, or give its range with --vary rate=LOW..HIGH")
    rates = rates or RateRange()
    arrival = Arrival.POISSON if job.arrival is Arrival.CLOSED else job.arrival
    search = RateSearch(tuple(limits), goal or RateGoal(), rates.low, rates.high)
    plan = RatePlan(replace(job, arrival=arrival), search, tuple(curves) or (("", job.knobs),), rates)
    for index in range(len(plan.curves)):
        validate(replace(plan.job, knobs=plan.knobs_at(index, FIRST_RATE)))
    return plan


def open_depth(job: JobSpec) -> int:
    """Queue depth of an open loop where none is asked for."""
    return min(DEPTH, MAX_THREADS) if job.backend is Backend.THREADS else DEPTH
