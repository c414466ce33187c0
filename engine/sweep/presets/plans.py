"""Plans of a preset: its axes on these targets, checked before anything starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from engine.errors import UsageError
from engine.job.knobs import KNOBS, KNOBS_BY_KEY, Knob
from engine.job.spec import JobSpec, Permissions
from engine.replacing import replace
from engine.statistics.batch_means import StopRule
from engine.sweep.axes import NO_OTHERS, SweepAxis, parse_axis
from engine.sweep.outer_knob import OuterKnob
from engine.sweep.plan import SweepPlan, make_plan, require_write_permission, rough_time
from engine.sweep.presets.preset import AGAIN, HostSize, Preset, PresetPart
from engine.sweep.presets.table import PresetPoint
from engine.sweep.runner import SweepResult
from engine.sweep.tuned_axis import TuneKnob
from engine.sweep.tuning import check_tuning
from engine.text import safe_text

POINT_S = 5.0
"""Measured time of a point: several of the per-second maxima whose mean is a figure of the studies."""
_MOST_WARM_UP_S = 3.0
_LEAST_FOR_PEAKS_S = 2.0
"""Time of a point that holds a whole second, wherever it begins."""
_TURN_S = 0.2
"""Usual time from one point to the warm-up of the next."""
_DEPTH = KNOBS["queue_depth"]
_FEW_IOS_PERCENT = 50.0
"""The time of a point is fixed; percentiles do not prolong it."""


class PresetPlan(Struct, frozen=True):
    """A preset on these targets."""

    preset: Preset
    parts: tuple[tuple[PresetPart, SweepPlan], ...]
    remarks: tuple[str, ...]
    """What cannot be repeated here, one line each."""

    @property
    def plans(self) -> tuple[SweepPlan, ...]:
        """Plans of the parts."""
        return tuple(plan for _, plan in self.parts)

    @property
    def least_read_pct(self) -> float:
        """The lowest share of reads of all points: below 100 it writes."""
        return min(plan.least_read_pct for plan in self.plans)

    @property
    def words(self) -> str:
        """How much it is and how long it takes, in one line."""
        plans = self.plans
        points = sum(plan.trials for plan in plans)
        rule = plans[0].rule
        usual_s = points * (rule.least_warm_up_s + rule.most_s + _TURN_S)
        most_s = points * (rule.most_warm_up_s + rule.most_s + _TURN_S)
        joins = " or " if self.preset.rounds else " x "
        axes = "; ".join(joins.join(axis.text for axis in plan.axes) for plan in plans)
        each = f"{points} points of {rule.most_s:g} s"
        if self.preset.rounds:
            each = f"{plans[0].points} points, {self.preset.rounds} times {rule.most_s:g} s each"
        usual, most = rough_time(usual_s), rough_time(most_s)
        longest = "" if usual == most else f" (up to {most})"
        return f"{self.preset.name}: {axes}: {each}, {usual}{longest}"


class PresetAsked(Struct, frozen=True):
    """What was asked of a preset."""

    vary: Sequence[str] = ()
    slo: Sequence[str] = ()
    knobs: Mapping[str, Any] = {}
    """Options of the load by key; those of axes replace them."""
    toggle: str | None = None
    """A shell command between the parts."""
    toggle_back: str | None = None
    """A shell command after them, which undoes the first; then the first part is measured again."""

    @property
    def commands(self) -> tuple[str, ...]:
        """Commands before the second part and the one after it."""
        return tuple(each for each in (self.toggle, self.toggle_back) if each is not None)


def plan_asked(
    preset: Preset, job: JobSpec, asked: PresetAsked, permissions: Permissions, others: Mapping[str, Knob] = NO_OTHERS
) -> PresetPlan:
    """Scale the axes of a preset to this host, with those that were asked for, and check every point.

    Raises:
        UsageError: an option has no effect on a preset, or as `plan_preset`.
        RefusedError: as `plan_preset`.
    """
    if asked.slo:
        raise UsageError("--slo: a preset measures the points of its study, whatever their latency: leave it out")
    if asked.knobs.get("rw") is not None:
        raise UsageError("--rw: a preset has the order of its study: leave it out, or give --read-pct")
    point_s = POINT_S if asked.knobs.get("runtime") is None else float(asked.knobs["runtime"])
    if point_s <= 0:
        raise UsageError("--runtime: the time of each point of a preset is longer than 0s")
    host, changes = HostSize.here(), [parse_axis(text, others) for text in asked.vary]
    keys = {parse_axis(text, others).knob.key for part in preset.parts(job, host) for text in part.axes}
    chosen = [key for key in sorted(keys) if asked.knobs.get(key) is not None]
    changes += [SweepAxis(KNOBS_BY_KEY[key], (asked.knobs[key],)) for key in chosen]
    is_back = asked.toggle_back is not None
    return plan_preset(preset, job, changes, permissions, host=host, point_s=point_s, others=others, is_back=is_back)


def plan_preset(
    preset: Preset,
    job: JobSpec,
    changes: Sequence[SweepAxis],
    permissions: Permissions,
    *,
    host: HostSize,
    point_s: float = POINT_S,
    others: Mapping[str, Knob] = NO_OTHERS,
    is_back: bool = False,
) -> PresetPlan:
    """Scale the axes of a preset to the host and check every point.

    Args:
        preset: the study.
        job: with its targets; what is no axis of the preset stays as it is.
        changes: axes in place of those of the same knob.
        permissions: writes that are not among them are left out where there are reads as well.
        host: what the axes are scaled to.
        point_s: how long each point is measured.
        others: what may vary beside the knobs of a job, by key.
        is_back: whether the first part is measured again at the end.

    Raises:
        UsageError: the preset cannot run on these targets, or has no such axis.
        RefusedError: all its points write to what may not be written.
        LunscopeError: a tunable that varies cannot be set.
    """
    if problem := preset.refusal(job):
        raise UsageError(f"--preset {preset.name}: {problem}")
    if preset.is_threads:
        changes = [replace(axis, knob=_DEPTH) if axis.knob.id == "threads" else axis for axis in changes]
    parts = preset.parts(job, host)
    parts = (*parts, replace(parts[0], name=AGAIN)) if is_back else parts
    known = {part.name: [parse_axis(text, others) for text in part.axes] for part in parts}
    _check_changes(preset, [axis for axes in known.values() for axis in axes], changes)
    nodes = (node for target in job.targets for node in target.nodes)
    unwritable = next((node for node in nodes if node not in permissions.allow_write), None)
    remarks = preset.remarks(job, host)
    if point_s < _LEAST_FOR_PEAKS_S:
        remarks = (*remarks, "average peak latencies need whole seconds: give --runtime 2s or more to have them")
    changed = {axis.knob.id: axis for axis in changes}
    own = {axis.knob.id for axes in known.values() for axis in axes}
    # Outermost, so that all points of a value are measured one after the other.
    tuned = tuple(axis for axis in changes if axis.knob.id not in own)
    made: list[tuple[PresetPart, SweepPlan]] = []
    for part in parts:
        axes = tuple(changed.get(axis.knob.id, axis) for axis in known[part.name])
        axes = (*tuned, *axes)
        if unwritable is not None and "read_pct" not in changed and _has_both(axes):
            axes = tuple(map(_without_writes, axes))
            remarks = (*remarks, f"all that writes is left out: allow it with --allow-write {safe_text(unwritable)}")
        following = tuple(each.name for each in parts[len(made) + 1 :])
        plan = replace(_timed(part.job, axes, point_s, preset), preset=preset.name, part=part.name, following=following)
        require_write_permission(plan, permissions)
        check_tuning(plan)
        made.append((part, plan))
    return PresetPlan(preset, tuple(made), tuple(dict.fromkeys(remarks)))


def _check_changes(preset: Preset, axes: Sequence[SweepAxis], changes: Sequence[SweepAxis]) -> None:
    known = {axis.knob.key: axis for axis in axes}
    keys = [axis.knob.key for axis in changes]
    for axis in changes:
        if axis.knob.key not in known and not isinstance(axis.knob, TuneKnob):
            names = ("threads" if preset.is_threads and key == _DEPTH.key else key for key in known)
            raise UsageError(f"{axis.text}: no axis of --preset {preset.name}: its axes are {', '.join(names)}")
        if keys.count(axis.knob.key) > 1:
            raise UsageError(f"{axis.knob.key}: given twice: put all its values into one")


def _has_both(axes: Sequence[SweepAxis]) -> bool:
    """Whether some points only read and others write."""
    return any(axis.knob.id == "read_pct" and 100.0 in axis.values and len(axis.values) > 1 for axis in axes)


def _without_writes(axis: SweepAxis) -> SweepAxis:
    return replace(axis, values=(100.0,)) if axis.knob.id == "read_pct" else axis


def _timed(job: JobSpec, axes: tuple[SweepAxis, ...], point_s: float, preset: Preset) -> SweepPlan:
    """Plan points that are measured for a fixed time: each combination once at most, or each value alone in rounds."""
    warm_up_s = min(point_s, _MOST_WARM_UP_S)
    rule = StopRule(
        least_s=point_s,
        most_s=point_s,
        least_warm_up_s=min(point_s, 1.0),
        most_warm_up_s=warm_up_s,
        percent=_FEW_IOS_PERCENT,
    )
    plan = make_plan(job, axes, (), rule, preset.rounds)
    if preset.rounds:
        return plan
    curves = tuple(replace(curve, search=replace(curve.search, next_load=preset.next_load)) for curve in plan.curves)
    return replace(plan, curves=curves)


def preset_points(name: str, result: SweepResult) -> list[PresetPoint]:
    """List what was measured of one part; not what was measured while targets failed."""
    return [
        PresetPoint(
            name,
            result.plan.knobs_at(curve.curve, round(trial.load)),
            trial,
            tuple((knob.id, value) for knob, value in curve.curve.values if isinstance(knob, OuterKnob)),
            curve.curve.index,
        )
        for curve in result.curves
        for trial in curve.trials
        if not trial.failing
    ]
