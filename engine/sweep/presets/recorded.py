"""The study that recorded sweeps are parts of."""

from __future__ import annotations

from collections.abc import Sequence

from engine.job.spec import JobSpec
from engine.sweep.axes import parse_axis
from engine.sweep.events import RecordedSweep
from engine.sweep.hosts_knob import MOST_HOSTS, hosts_knob
from engine.sweep.knee import Answer, Shape
from engine.sweep.limit import rule_for
from engine.sweep.plan import SweepPlan, combine
from engine.sweep.presets.outcome import PresetOutcome
from engine.sweep.presets.plans import PresetPlan
from engine.sweep.presets.preset import HostSize, Preset, PresetPart
from engine.sweep.presets.registry import FLEET_PRESETS, PRESETS
from engine.sweep.runner import CurveResult, SweepResult

_NOT_FITTED = Answer(Shape.UNKNOWN, "points of a study, without a curve")


def studies(sweeps: Sequence[RecordedSweep]) -> tuple[tuple[RecordedSweep, ...], ...]:
    """Put the parts of one study together that follow each other; a sweep that is no part of any is alone."""
    groups: list[list[RecordedSweep]] = []
    for sweep in sweeps:
        if groups and _goes_on(groups[-1], sweep):
            groups[-1].append(sweep)
        else:
            groups.append([sweep])
    return tuple(map(tuple, groups))


def _goes_on(group: Sequence[RecordedSweep], sweep: RecordedSweep) -> bool:
    plan = sweep.plan
    begun = [each.plan.part for each in group]
    return bool(plan.preset) and group[0].plan.preset == plan.preset and plan.part not in begun


def recorded_study(parts: Sequence[RecordedSweep]) -> PresetOutcome | None:
    """Return what the parts measured, for the tables of their study; None without measurements, or a known study."""
    preset = _study_of(parts[0].plan) if parts else None
    if preset is None or not any(part.points.done for part in parts):
        return None
    begun = {part.plan.part: part for part in parts}
    named = tuple(_part(each, begun.get(each.name)) for each in _all_parts(preset, parts))
    results = tuple(_result(part) for part in parts)
    return PresetOutcome(PresetPlan(preset, named, ()), results, ())


def _all_parts(preset: Preset, parts: Sequence[RecordedSweep]) -> tuple[PresetPart, ...]:
    """List the parts of a study: how many there are depends on the targets, which a recording of one does not tell."""
    of_here = {part.name: part for part in preset.parts(JobSpec(), HostSize.here())}
    begun, following = [part.plan.part for part in parts], parts[-1].plan.following
    if following is None:  # Of an earlier version, in which a part without a name was the only one.
        following = () if begun == [""] else tuple(name for name in of_here if name not in begun)
    names = (*begun, *following)
    return tuple(of_here.get(name) or PresetPart(name, JobSpec(), ()) for name in names)


def _study_of(plan: SweepPlan) -> Preset | None:
    """Find the study of a plan; it is the one over hosts where their number is an axis."""
    hosts = next((axis.values for axis in plan.axes if axis.knob.id == "hosts"), None)
    if hosts is None:
        return PRESETS.get(plan.preset)
    return FLEET_PRESETS[plan.preset](max(hosts)) if plan.preset in FLEET_PRESETS else None


def _part(part: PresetPart, begun: RecordedSweep | None) -> tuple[PresetPart, SweepPlan]:
    """Return a part with its recorded plan; with that of the study where it did not begin."""
    if begun is not None:
        return part, begun.plan
    axes = tuple(parse_axis(text, {"hosts": hosts_knob(MOST_HOSTS)}) for text in part.axes)
    return part, combine(part.job, axes, (), rule_for(()))


def _result(part: RecordedSweep) -> SweepResult:
    curves = tuple(
        CurveResult(curve, trials, _NOT_FITTED)
        for curve, trials in zip(part.plan.curves, part.points.trials, strict=True)
    )
    troubles = tuple(f"{part.plan.point_name(each.point)}: {each.words}" for each in part.points.left_out)
    return SweepResult(part.plan, curves, part.ended or "goes on", troubles, 0.0)
