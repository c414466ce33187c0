"""What a sweep is to measure: every combination of the axes, checked before anything starts."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from msgspec import Struct, field

from engine.errors import RefusedError, UsageError
from engine.job.knobs import Knob, Knobs
from engine.job.spec import JobSpec, Permissions
from engine.job.validate import validate
from engine.replacing import replace
from engine.statistics.batch_means import StopRule
from engine.study.trial_file import TrialKind
from engine.sweep.axes import SweepAxis, load_axis, shown
from engine.sweep.knee import Answer, answer
from engine.sweep.limit import Limit, rule_for
from engine.sweep.one_at_a_time import one_at_a_time
from engine.sweep.points import Point
from engine.sweep.setting_axis import SettingKnob
from engine.sweep.trial import TRIALS, SearchStage, Trial
from engine.text import safe_text

_REPEATS = 2
"""Measurements of each load around the knee, of the lowest and the highest; all others have one."""


_POSITIONS: dict[str, int] = {stage: position for position, stage in enumerate(SearchStage)}


NextLoad: TypeAlias = Callable[[Sequence[int], Sequence[Trial]], int | None]
"""Chooses the next load of those that are left, by what was measured; None where no more are needed."""


def each_once(left: Sequence[int], _trials: Sequence[Trial]) -> int | None:
    """Take all loads in their order."""
    return next(iter(left), None)


class Search(Struct, frozen=True):
    """The search along one axis; a pure function of what was measured, so that it goes on from a file."""

    loads: tuple[int, ...]
    """Loads of the ladder, ascending."""
    seed: int = 1
    bisects: bool = True
    """Whether loads between those of the ladder can be set."""
    next_load: NextLoad | None = None
    """Chooses among the loads of the ladder, each of which is measured once at most; None: as a knee needs them."""

    @property
    def expected(self) -> int:
        """Measurements in all, about; exactly only when they are known."""
        count = len(self.loads)
        if self.next_load is not None:
            return count
        if count <= 2:
            return (1 + _REPEATS) * count
        return 2 * (count + (4 if self.bisects else 0)) + 4

    def wanted(self, stage: SearchStage, trials: Sequence[Trial]) -> Iterable[int]:
        """List the loads to measure in a stage, in their order, those already measured left out.

        Where each follows from those before it, the trials grow meanwhile.
        """
        if self.next_load is not None:
            return self._chosen(self.next_load, trials) if stage is SearchStage.LADDER else ()
        before = [trial for trial in trials if _position(trial.stage) < _position(stage)]
        done = Counter(round(trial.load) for trial in trials if trial.stage == stage)
        left = []
        for load in self._all(stage, before):
            if done[load]:
                done[load] -= 1
            else:
                left.append(load)
        return tuple(left)

    def _chosen(self, next_load: NextLoad, trials: Sequence[Trial]) -> Iterator[int]:
        chosen = set[int]()
        while True:
            gone = chosen | {round(trial.load) for trial in trials}
            load = next_load([each for each in self.loads if each not in gone], trials)
            if load is None:
                return
            chosen.add(load)
            yield load

    def _all(self, stage: SearchStage, before: Sequence[Trial]) -> list[int]:
        match stage:
            case SearchStage.LADDER:
                return list(self.loads)
            case SearchStage.BISECT | SearchStage.BISECT_AGAIN:
                return self._between(before) if self.bisects else []
            case _:
                return self._repeated(before)

    def _between(self, before: Sequence[Trial]) -> list[int]:
        """Choose loads half-way, in logarithms, from the knee to its measured neighbours."""
        found = _interesting(answer(before, with_usl=False))
        measured = sorted({round(trial.load) for trial in before})
        wanted = set()
        for load in found:
            below = max((each for each in measured if each <= load), default=None)
            for low, high in itertools.pairwise(measured):
                middle = round(math.sqrt(low * high))
                is_near = low <= load <= high or below in (low, high)
                if is_near and low < middle < high:
                    wanted.add(middle)
        return sorted(wanted)

    def _repeated(self, before: Sequence[Trial]) -> list[int]:
        measured = sorted({round(trial.load) for trial in before})
        near = {
            each
            for load in _interesting(answer(before, with_usl=False))
            for each in measured
            if abs(math.log2(each / load)) <= 1
        }
        often = near | set(measured[:1]) | set(measured[-1:])
        wanted = [each for each in measured for _ in range(_REPEATS if each in often else 1)]
        random.Random(self.seed).shuffle(wanted)  # noqa: S311 (order of measurements, not secrets)
        return wanted


def _position(stage: str) -> int:
    return _POSITIONS[stage] if stage else -1


def _interesting(found: Answer) -> list[float]:
    """Find the loads around which to measure more finely."""
    optima = (found.balance, found.highest)
    return [optimum.found for optimum in optima if optimum is not None]


MOST_POINTS = 2000
"""Different combinations of values."""
_WARM_UP_S = 1.5
"""Usual time from the turn of the knobs to the start of measuring."""
_USUAL_S = 1.5
"""Usual time to measure a point of a steady device."""


class Curve(Struct, frozen=True):
    """The points that differ in load alone; a single point where no load varies."""

    index: int
    knobs: Knobs
    """Knobs with the lowest load."""
    values: tuple[tuple[Knob, Any], ...]
    """Values of the other axes."""
    search: Search

    @property
    def name(self) -> str:
        """Such as "bs=4k stripe_width=2"; empty if only the load varies."""
        return " ".join(f"{knob.key}={shown(knob, value)}" for knob, value in self.values)


class SweepPlan(Struct, frozen=True):
    """A whole sweep."""

    job: JobSpec
    axes: tuple[SweepAxis, ...]
    load: SweepAxis | None
    """The axis on which the knee is searched."""
    curves: tuple[Curve, ...]
    limits: tuple[Limit, ...] = ()
    rule: StopRule = field(default_factory=StopRule)
    preset: str = ""
    """Name of the preset that it is a part of; empty for others."""
    part: str = ""
    """Name of that part; empty where the preset has one only."""
    following: tuple[str, ...] | None = None
    """Names of the parts after it; None if that is not known."""
    rounds: int = 0
    """Where it shows the effect of each axis alone: how often all points are measured, in another order each time."""

    def job_at(self, curve: Curve) -> JobSpec:
        """Job of a curve: with the settings that vary.

        Raises:
            UsageError: one does not apply to these targets.
        """
        job = self.job
        for knob, value in curve.values:
            if isinstance(knob, SettingKnob):
                job = knob.applied(job, value)
        return job

    def armed_at(self, curve: Curve) -> JobSpec:
        """Job of a curve with its first knobs and the depth of the deepest, for which the engine makes room."""
        depths = (self.knobs_at(each, load).queue_depth for each in self.curves for load in each.search.loads)
        first = self.knobs_at(curve, curve.search.loads[0])
        return replace(self.job_at(curve), knobs=replace(first, queue_depth=max(depths)))

    def knobs_at(self, curve: Curve, load: int) -> Knobs:
        """Knobs of one point."""
        return curve.knobs if self.load is None else self.load.knob.turned(curve.knobs, load)

    @property
    def armed(self) -> JobSpec:
        """Job of the first curve."""
        return self.armed_at(self.curves[0])

    @property
    def with_all_targets(self) -> JobSpec:
        """The same with the targets and paths of all curves."""
        return replace(self.armed, targets=self.job.targets)

    @property
    def first(self) -> Knobs:
        """Knobs of the first point."""
        return self.knobs_at(self.curves[0], self.curves[0].search.loads[0])

    @property
    def least_read_pct(self) -> float:
        """The lowest share of reads of all points."""
        return min(curve.knobs.read_pct for curve in self.curves)

    def point_name(self, point: Point) -> str:
        """Such as "bs=4k qd=16"."""
        return self.point_names(point.curve, (point.load,))[0]

    def point_names(self, curve: int, loads: Iterable[int]) -> list[str]:
        """Name points of a curve; the values of its axes are written once."""
        name = self.curves[curve].name
        if self.load is None:
            return [name for _ in loads]
        lead = f"{name} {self.load.knob.key}=".lstrip()
        return [f"{lead}{load}" for load in loads]

    def in_round(self, number: int) -> list[Curve]:
        """Return the points in the order of a round: at random, and each second time the other way round.

        So a drift is the effect of no axis: over two rounds one that is even takes nothing from any ratio.
        """
        curves = list(self.curves)
        random.Random(self.job.seed + number // 2).shuffle(curves)  # noqa: S311 (order, not secrets)
        return curves[::-1] if number % 2 else curves

    @property
    def points(self) -> int:
        """Different combinations that are measured at least once."""
        return sum(len(curve.search.loads) for curve in self.curves)

    @property
    def trials(self) -> int:
        """Measurements expected, with bisection and repetitions."""
        return self.rounds * self.points or sum(curve.search.expected for curve in self.curves)

    @property
    def expected_s(self) -> tuple[float, float]:
        """Time on a steady device, and the longest."""
        least = _WARM_UP_S + max(_USUAL_S, self.rule.least_s)
        return self.trials * least, self.trials * (self.rule.most_warm_up_s + self.rule.most_s)

    @property
    def trial_kind(self) -> TrialKind[Trial]:
        """How its trials are kept."""
        return TRIALS

    @property
    def curve_count(self) -> int:
        """Number of curves."""
        return len(self.curves)

    @property
    def known_by(self) -> tuple[object, ...]:
        """Whatever makes trials of another sweep useless for this one."""
        values = (self.job, *(axis.text for axis in self.axes), *(limit.text for limit in self.limits))
        # The operator chose how long each point is measured.
        is_timed = self.rounds or any(curve.search.next_load is not None for curve in self.curves)
        return (*values, self.rule) if is_timed else values

    @property
    def words(self) -> str:
        """How much it is, in one line."""
        usual_s, most_s = self.expected_s
        axes = " x ".join(axis.text for axis in self.axes)
        measurements = f"{self.points} points, about {self.trials} measurements"
        return f"{axes}: {measurements}, {rough_time(usual_s)} (up to {rough_time(most_s)} on a noisy device)"


def make_plan(
    job: JobSpec,
    axes: tuple[SweepAxis, ...],
    limits: tuple[Limit, ...] = (),
    rule: StopRule | None = None,
    rounds: int = 0,
) -> SweepPlan:
    """Combine the axes over a job; with rounds each value is set alone, and measured in each of them.

    Raises:
        UsageError: no axis, the same knob twice, too many points, or a combination that this job cannot have.
    """
    if not axes:
        raise UsageError("nothing varies: give --vary, such as --vary qd=1..256")
    keys = [axis.knob.key for axis in axes]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice is not None:
        raise UsageError(f"--vary {twice}: given twice: put all its values into one")
    points = math.prod(len(axis.values) for axis in axes)
    if points > MOST_POINTS:
        usual_s = points * 2 * (_WARM_UP_S + _USUAL_S)
        raise UsageError(
            f"--vary: {points:,} points would take {rough_time(usual_s)}; "
            f"the most is {MOST_POINTS:,}: give fewer values"
        )
    plan = combine(job, axes, limits, rule or rule_for(limits), rounds)
    _check_settings(plan)
    plan = replace(plan, curves=tuple(_on_its_targets(plan, curve) for curve in plan.curves))
    _check(plan)
    return plan


def combine(
    job: JobSpec, axes: tuple[SweepAxis, ...], limits: tuple[Limit, ...], rule: StopRule, rounds: int = 0
) -> SweepPlan:
    """Combine axes without any check, as for a sweep that was measured elsewhere."""
    load = None if rounds else load_axis(axes)
    others = tuple(axis for axis in axes if axis is not load)
    points = one_at_a_time(others) if rounds else itertools.product(*(axis.values for axis in others))
    return SweepPlan(job, axes, load, tuple(_curves(job, load, others, points)), limits, rule, rounds=rounds)


def _curves(
    job: JobSpec, load: SweepAxis | None, others: tuple[SweepAxis, ...], points: Iterable[tuple[Any, ...]]
) -> Iterator[Curve]:
    for index, values in enumerate(points):
        knobs = job.knobs if load is None else load.knob.turned(job.knobs, load.values[0])
        for axis, value in zip(others, values, strict=True):
            knobs = axis.knob.turned(knobs, value)
        named = tuple((axis.knob, value) for axis, value in zip(others, values, strict=True))
        loads = (1,) if load is None else tuple(load.values)
        yield Curve(index, knobs, named, Search(loads, job.seed + index, bisects=load is not None and load.is_range))


def _check_settings(plan: SweepPlan) -> None:
    for axis in plan.axes:
        if isinstance(axis.knob, SettingKnob) and any(target.path is None for target in plan.job.targets):
            raise UsageError(
                f"--vary {axis.knob.key}: the load begins anew with each value, and scratch files would be filled each "
                "time: name targets with --target"
            )
    for curve in plan.curves:
        try:
            plan.job_at(curve)
        except UsageError as error:
            raise UsageError(f"--vary: {curve.name} cannot be measured: {error}") from None


def _on_its_targets(plan: SweepPlan, curve: Curve) -> Curve:
    """Spread the load over no more targets than the curve has, unless the width varies."""
    left = len(plan.job_at(curve).targets)
    if left == len(plan.job.targets) or any(axis.knob.id == "stripe_width" for axis in plan.axes):
        return curve
    return replace(curve, knobs=replace(curve.knobs, stripe_width=min(curve.knobs.stripe_width, left)))


def _check(plan: SweepPlan) -> None:
    for curve in plan.curves:
        job = plan.job_at(curve)
        for load in curve.search.loads:
            try:
                validate(replace(job, knobs=plan.knobs_at(curve, load)))
            except UsageError as error:
                values = curve.values if plan.load is None else (*curve.values, (plan.load.knob, load))
                point = " ".join(f"{knob.key}={shown(knob, value)}" for knob, value in values)
                raise UsageError(f"--vary: {point} cannot be measured: {error}") from None


def require_write_permission(plan: SweepPlan, permissions: Permissions) -> None:
    """Make sure before the start that no point is refused for want of permission to write.

    Raises:
        RefusedError: a point writes to a path that may not be written.
    """
    for curve in plan.curves:
        job = plan.job_at(curve)
        for load in curve.search.loads:
            knobs = plan.knobs_at(curve, load)
            targets = job.targets[: knobs.stripe_width] if knobs.read_pct < 100 else ()
            for path in (path for target in targets for path in target.nodes):
                if path not in permissions.allow_write:
                    path = safe_text(path)  # noqa: PLW2901 (shown from here on)
                    raise RefusedError(f"{path}: the sweep writes to it: allow it with --allow-write {path}")


def rough_time(seconds: float) -> str:
    """Write a time as people estimate it, such as "about 5 min"."""
    if seconds < 90:
        return f"about {max(seconds, 1):.0f} s"
    if seconds < 5400:
        return f"about {seconds / 60:.0f} min"
    return f"about {seconds / 3600:.0f} h"
