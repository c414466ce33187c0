"""The answer of a sweep over one axis of load: its shape, three named optima, inflections, and how sure that is."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from enum import StrEnum
from functools import cached_property

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from engine.replacing import replace
from engine.statistics.student_t import t_quantile
from engine.statistics.warmup import Trend
from engine.sweep.busy_host import busy_host_pct
from engine.sweep.curve import STEPS_PER_OCTAVE, Curves, Floats, Observations, Terms, fit_curves
from engine.sweep.limit import Limit, load_within
from engine.sweep.optimum import CurveReading, Optimum, set_back
from engine.sweep.repeats import Repeats, spread_of
from engine.sweep.servers import Servers, fit_servers
from engine.sweep.trial import LITTLE_HOLDS, Trial
from engine.sweep.usl import Usl, fit_usl

_LEAST_LOADS = 4
_LEAST_WITH_DRIFT = 12
"""Trials from which a drift is distinguished from the effect of the load."""
_EFFECT = math.log(1.1)
"""Throughputs that differ less over the whole axis are flat."""
_FALL = math.log(1.05)
"""A fall of less is none."""
_NEAR_HIGHEST = math.log(1 / 0.97)
"""How far below the highest throughput a lower load may lie and be preferred."""
_LEFT_GAIN = math.log2(1.8)
"""Gain of a doubled load up to the left inflection, 80 % or more."""
_RIGHT_GAIN = math.log2(1.05)
"""Gain of a doubled load from the right inflection on, less than 5 %."""
_UNSETTLED = 0.25
"""Share of trials that never settled, above which nothing is concluded."""
_DENSE_PER_OCTAVE = 16
_CONFIDENCE = 0.95
_RESOLUTION = 2 ** (1 / STEPS_PER_OCTAVE)
"""A knee is not searched more finely than this, which is the least width of its interval."""
_UNSEEN = math.log(1.5)
"""Effect over the whole axis that scatter may hide at most where a curve is called flat."""
_NOISY = 0.25
"""Share of measurements that ended noisy, from which all of it is called so."""
_NOISY_SPREAD = 0.05
"""Likewise of the usual spread of a load, which repeats may show although each measurement was precise."""
_MOST_ERROR = 0.30
"""Largest error of a fit: where measurements are farther from any curve, its optima are chance."""


class Shape(StrEnum):
    """What the curve is called."""

    KNEE = "knee"
    PEAK = "peak"
    """Rises to a peak and falls."""
    FLAT = "flat"
    RISING = "rising"
    """Throughput rises to the end of the axis, without a knee."""
    FALLING = "falling"
    """Has its highest throughput at the lowest load."""
    WARMING = "warming up"
    SLOWING = "slowing down"
    UNKNOWN = "unknown"
    """Too few loads, or too much scatter to see any effect."""


class LittleCheck(Struct, frozen=True):
    """How far I/Os in flight are from throughput x latency (Little's law), at the worst load."""

    load: float
    deviation: float
    """Relative; above 0: more in flight than the latencies explain."""

    @property
    def holds(self) -> bool:
        """Whether the figures fit each other within 5 %."""
        return abs(self.deviation) <= LITTLE_HOLDS


class Answer(Struct, frozen=True):
    """What a curve says."""

    shape: Shape
    words: str
    """One line."""
    balance: Optimum | None = None
    """Highest throughput per latency (Kleinrock's power)."""
    within: tuple[tuple[Limit, Optimum | None], ...] = ()
    """Highest throughput within each limit; None where no load keeps it."""
    highest: Optimum | None = None
    """Lowest load within 3 % of the highest throughput; for a flat curve its lowest load, which is the one to use."""
    left: float | None = None
    """Load up to which a doubled load gains at least 80 %; None where there is none such."""
    right: float | None = None
    """Load from which it gains less than 5 %; None where that is not reached."""
    fit_error: float | None = None
    drift: float | None = None
    """Relative change of throughput from the first trial to the last that is no effect of the load."""
    usl: Usl | None = None
    little: LittleCheck | None = None
    servers: Servers | None = None
    """The law of equal servers, where it fits the curve."""
    noise: float | None = None
    """How far the IOPS of a load are usually certain, as a share; None where measurements were precise and agree."""
    host_busy_pct: float | None = None
    """How busy the host was where that may be why it is noisy; None elsewhere."""

    @property
    def highest_name(self) -> str:
        """What `highest` is called: where nothing depends on the load, it is merely the one to use."""
        return "load to use" if self.shape is Shape.FLAT else "highest throughput"


def answer(trials: Sequence[Trial], limits: Sequence[Limit] = (), *, with_usl: bool = True) -> Answer:
    """Say what the trials of one axis show; those without throughput or with failing targets are left out.

    The scalability law takes a quarter of the time, which a search that asks after every stage need not spend.
    """
    used = [trial for trial in trials if trial.iops > 0 and trial.load > 0 and not trial.failing]
    little = _little(used)
    if len({trial.load for trial in used}) < _LEAST_LOADS:
        return Answer(Shape.UNKNOWN, f"fewer than {_LEAST_LOADS} loads were measured: no curve", little=little)
    unsettled = [trial for trial in used if not trial.is_settled]
    if len(unsettled) > _UNSETTLED * len(used):
        return _unsettled(used, unsettled, little)
    found, noise = _Curve(used, with_usl=with_usl).answer(limits, little), _noise(used)
    is_doubtful = noise is not None or found.shape is Shape.UNKNOWN
    return replace(
        found, noise=noise, host_busy_pct=busy_host_pct(trial.host_busy_pct for trial in used) if is_doubtful else None
    )


def _noise(trials: list[Trial]) -> float | None:
    """Usual spread of a load; None where most measurements were precise and repeats agree with each other."""
    repeats = Repeats.of(trials)
    loads = {trial.load for trial in trials}
    spread = statistics.median(spread_of([one for one in trials if one.load == load], repeats) for load in loads)
    noisy = sum(trial.is_noisy for trial in trials) >= _NOISY * len(trials)
    return min(spread, 1.0) if noisy or spread >= _NOISY_SPREAD else None


def _unsettled(used: list[Trial], unsettled: list[Trial], little: LittleCheck | None) -> Answer:
    slowing = sum(trial.trend is Trend.SLOWING for trial in unsettled) > len(unsettled) / 2
    shape = Shape.SLOWING if slowing else Shape.WARMING
    words = f"{shape}: {len(unsettled)} of {len(used)} measurements never became steady; sweep again later"
    return Answer(shape, words, little=little)


def _little(trials: list[Trial]) -> LittleCheck | None:
    checks = [LittleCheck(trial.load, deviation) for trial in trials if (deviation := trial.little) is not None]
    return max(checks, key=lambda check: abs(check.deviation), default=None)


def fit_trials(trials: Sequence[Trial]) -> Curves:
    """Fit the throughputs over the loads; a drift is taken out where enough is measured again to tell it from these."""
    loads, iops = (np.array([getattr(trial, name) for trial in trials]) for name in ("load", "iops"))
    times_s = np.array([trial.start_s + trial.duration_s / 2 for trial in trials])
    repeated = len(trials) >= max(_LEAST_WITH_DRIFT, len(set(loads.tolist())) + 3)
    return fit_curves(Observations.of(loads, iops, times_s), with_drift=repeated)


class _Curve:
    """The fitted curve, and what follows from it."""

    def __init__(self, trials: list[Trial], *, with_usl: bool) -> None:
        self._trials = trials
        loads = np.array([trial.load for trial in trials])
        iops = np.array([trial.iops for trial in trials])
        self._fit = fit_trials(trials)
        self._usl = fit_usl(loads, iops) if with_usl else None
        octaves = math.log2(loads.max() / loads.min())
        self._loads = np.geomspace(loads.min(), loads.max(), max(round(octaves * _DENSE_PER_OCTAVE), 8) + 1)
        self._n = np.log(self._loads)
        self._y = self._fit.y(self._n)
        in_flight = {trial.load: trial.in_flight for trial in trials}
        known = np.array(sorted(in_flight))
        waiting = np.log([max(in_flight[load], 1e-9) for load in known])
        # With R = N / X the power X / R is X^2 / N.
        self._power = 2 * self._y - np.interp(self._n, np.log(known), waiting)

    def answer(self, limits: Sequence[Limit], little: LittleCheck | None) -> Answer:
        shape = self._shape()
        if shape is Shape.UNKNOWN:
            return self._unknown(limits, little)
        has_knee = shape in (Shape.KNEE, Shape.PEAK)
        left, right = self._inflections() if has_knee else (None, None)
        highest = _lowest_near_highest(self._y) if shape is not Shape.FLAT else np.zeros(1, np.intp)
        return Answer(
            shape,
            self._words(shape),
            balance=self._optimum(np.asarray(np.argmax(self._power, axis=1), np.intp), self._power)
            if has_knee
            else None,
            within=tuple((limit, self._within(limit)) for limit in limits),
            highest=self._optimum(highest, self._y),
            left=left,
            right=right,
            fit_error=self._fit.error,
            drift=math.expm1(self._fit.drift) if self._fit.drift else None,
            usl=self._usl,
            little=little,
            servers=fit_servers(self._trials) if shape in (Shape.KNEE, Shape.FLAT) else None,
        )

    def _unknown(self, limits: Sequence[Limit], little: LittleCheck | None) -> Answer:
        """Conclude nothing of throughput; that no load keeps a limit is seen by the latencies."""
        never = tuple((limit, None) for limit in limits if load_within(self._trials, limit) is None)
        first, last = self._loads[0], self._loads[-1]
        scatter = f"measurements scatter by {100 * self._fit.error:.0f} %"
        words = f"{scatter}: too much to see what the load changes from {first:g} to {last:g}, or to name the best"
        return Answer(Shape.UNKNOWN, words, within=never, fit_error=self._fit.error, little=little)

    def _shape(self) -> Shape:
        if self._fit.error > _MOST_ERROR:
            return Shape.UNKNOWN
        best = self._y[0]
        top = int(np.argmax(best))
        if float(np.ptp(best)) < _EFFECT:
            return Shape.FLAT if self._hidden_effect() < _UNSEEN else Shape.UNKNOWN
        if best[top] - best[0] < _FALL:
            return Shape.FALLING
        gain = best[-1] - best[-1 - _DENSE_PER_OCTAVE] if len(best) > _DENSE_PER_OCTAVE else best[-1] - best[0]
        if best[top] - best[-1] > _FALL:
            return Shape.PEAK
        still_rises = gain > math.log(2) / 2 or self._fit.terms is Terms.SLOPE or self._may_be_beyond()
        return Shape.RISING if still_rises else Shape.KNEE

    def _hidden_effect(self) -> float:
        """Half-width of the 95 % interval of a slope over the whole axis: a smaller effect may hide in the scatter."""
        n = np.log([trial.load for trial in self._trials])
        freedom = max(len(n) - 2, 1)
        error = self._fit.error / math.sqrt(float(np.sum((n - n.mean()) ** 2)))
        return t_quantile(_CONFIDENCE, freedom) * error * float(np.ptp(n))

    def _may_be_beyond(self) -> bool:
        """Whether a curve without any knee up to the last load fits as well."""
        return bool((np.argmax(self._power, axis=1) >= len(self._n) - 2).any())

    def _inflections(self) -> tuple[float | None, float | None]:
        gains = np.gradient(self._y[0], self._n)
        steep, shallow = np.flatnonzero(gains >= _LEFT_GAIN), np.flatnonzero(gains < _RIGHT_GAIN)
        left = float(self._loads[steep[-1]]) if len(steep) else None
        right = float(self._loads[shallow[0]]) if len(shallow) else None
        return left, right

    def _optimum(self, found: NDArray[np.intp], quality: Floats) -> Optimum:
        """Make an optimum of its position on every curve that fits, the best curve first."""
        position = int(found[0])
        steepness = _steepness(-quality[0], self._n, position)
        return set_back(
            float(self._loads[position]),
            self._interval(found),
            steepness,
            self._fit.error,
            self._reading,
        )

    def _interval(self, found: NDArray[np.intp]) -> tuple[float, float]:
        low, high = float(self._loads[found.min()]), float(self._loads[found.max()])
        return max(low / _RESOLUTION, float(self._loads[0])), min(high * _RESOLUTION, float(self._loads[-1]))

    def _within(self, limit: Limit) -> Optimum | None:
        crossing = load_within(self._trials, limit)
        if crossing is None:
            return None
        allowed = self._loads <= crossing.load * (1 + 1e-9)
        best = self._y[0][allowed]
        position = int(_lowest_near_highest(best[None, :])[0])
        at_limit = position >= int(allowed.sum()) - 2 and crossing.load < self._loads[-1]
        # Down to a whole load: the next one up exceeds the limit.
        load = max(float(math.floor(crossing.load)), 1.0) if at_limit else float(self._loads[position])
        interval = (crossing.low, crossing.high) if at_limit else (min(crossing.low, load), load)
        optimum = set_back(
            load,
            interval,
            crossing.steepness if at_limit else 0.0,
            max(self._fit.error, crossing.error),
            self._reading,
        )
        return replace(optimum, ios=self._ios_near(optimum.at.load))

    def _ios_near(self, load: float) -> int:
        """I/Os at the measured load that is nearest."""
        nearest = min((trial.load for trial in self._trials), key=lambda each: abs(math.log(each / load)))
        return sum(trial.ios for trial in self._trials if trial.load == nearest)

    def _reading(self, load: float) -> CurveReading:
        """Read the curve at a load, or at the lowest that was measured."""
        load = max(load, float(self._loads[0]))
        return CurveReading(
            load, math.exp(float(self._fit.y(np.array([math.log(load)]))[0, 0])), self._latency_at(load)
        )

    def _latency_at(self, load: float) -> float:
        """Mean latency in ns, between measured loads in logarithms."""
        return math.exp(float(np.interp(math.log(load), *self._latencies)))

    @cached_property
    def _latencies(self) -> tuple[list[float], list[float]]:
        """Logarithms of the measured loads, ascending, and of their mean latencies in ns."""
        means: dict[float, list[float]] = {}
        for trial in self._trials:
            means.setdefault(trial.load, []).append(math.log(max(trial.latency_ns, 1.0)))
        known = sorted(means)
        return [math.log(load) for load in known], [statistics.median(means[load]) for load in known]

    def _words(self, shape: Shape) -> str:
        first, last = self._loads[0], self._loads[-1]
        best = self._y[0]
        change = math.expm1(float(np.ptp(best)))
        match shape:
            case Shape.FLAT:
                same = f"throughput differs by {100 * change:.0f} % from {first:g} to {last:g}"
                return f"flat: {same}; no knee: use {first:g}"
            case Shape.FALLING:
                return f"falling: {first:g} is the best load measured, {last:g} the worst; no knee"
            case Shape.RISING:
                gain = math.expm1((best[-1] - best[0]) / max(math.log2(last / first), 1e-9))
                return f"rises up to {last:g}, by {100 * gain:.0f} % for each doubling; no knee is certain up to there"
            case Shape.PEAK:
                top = float(self._loads[int(np.argmax(best))])
                fall = -math.expm1(float(best[-1] - best.max()))
                return f"throughput peaks at {top:.0f} and is {100 * fall:.0f} % lower at {last:g}"
            case Shape.KNEE:
                return "throughput rises to the knee and stays"
            case Shape.WARMING | Shape.SLOWING | Shape.UNKNOWN:
                raise ValueError(f"{shape} has no curve")


def _lowest_near_highest(y: Floats) -> NDArray[np.intp]:
    """Position of the first load within 3 % of the highest, for every curve."""
    return np.asarray(np.argmax(y >= y.max(axis=1, keepdims=True) - _NEAR_HIGHEST, axis=1), np.intp)


def _steepness(badness: Floats, n: Floats, position: int) -> float:
    """How fast, in logarithms, it gets worse over the next quarter of an octave; 0 where it does not."""
    beyond = min(position + _DENSE_PER_OCTAVE // 4, len(n) - 1)
    if beyond == position:
        return 0.0
    return max(float((badness[beyond] - badness[position]) / (n[beyond] - n[position])), 0.0)
