"""A sweep as events of a session."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from engine.job.spec import JobSpec
from engine.replacing import replace
from engine.statistics.batch_means import StopRule
from engine.study.events import Data, RecordedStudy, StudyEvents
from engine.study.points import LeftOut
from engine.sweep.axes import parse_axis
from engine.sweep.hosts_knob import MOST_HOSTS, hosts_knob
from engine.sweep.limit import Limit
from engine.sweep.plan import SweepPlan, combine, each_once
from engine.sweep.points import Point
from engine.sweep.trial import TRIALS, Trial


class RecordedSweep(RecordedStudy[SweepPlan, Trial], frozen=True):
    """A recorded sweep at one moment."""


class _SweepBegin(Struct, frozen=True):
    axes: str = ""
    """A line each, as the limits."""
    limits: str = ""
    percent: float = 99.0
    preset: str | UnsetType = UNSET
    part: str | UnsetType = UNSET
    following: str | UnsetType = UNSET
    """Parts after it, a line each."""
    rounds: Annotated[int, Meta(ge=1, le=1000)] | UnsetType = UNSET


def begin_event(plan: SweepPlan) -> tuple[str, Data]:
    """Text and data of the start of a sweep."""
    axes, limits = ([each.text for each in group] for group in (plan.axes, plan.limits))
    begin = _SweepBegin("\n".join(axes), "\n".join(limits), plan.rule.percent)
    if plan.preset:
        begin = replace(begin, preset=plan.preset, part=plan.part, following="\n".join(plan.following or ()))
        begin = replace(begin, rounds=plan.rounds or UNSET)
    return f"sweep over {' x '.join(axes)}: {plan.points} points", SWEEP_EVENTS.begin_data(begin)


def trial_event(plan: SweepPlan, curve: int, trial: Trial) -> tuple[str, Data]:
    """Text and data of a measurement."""
    name = plan.point_name(Point(curve, round(trial.load)))
    text = f"sweep: {name}: {trial.iops:,.0f} IOPS, {trial.latency_ns / 1e6:.3f} ms"
    return text, SWEEP_EVENTS.trial_data(curve, trial)


def left_out_event(plan: SweepPlan, left_out: LeftOut) -> tuple[str, Data]:
    """Text and data of a point that is not measured."""
    at: Point = left_out.point
    data = SWEEP_EVENTS.left_out_data(curve=at.curve, load=at.load, reason=left_out.reason)
    return f"sweep: {plan.point_name(at)}: {left_out.words}", data


def end_event(ended: str) -> tuple[str, Data]:
    """Text and data of the end."""
    return f"sweep: {ended}", SWEEP_EVENTS.end_data(ended)


def _plan(begin: _SweepBegin) -> tuple[SweepPlan, int]:
    axes = tuple(parse_axis(text, {"hosts": hosts_knob(MOST_HOSTS)}) for text in begin.axes.splitlines())
    if not axes:
        raise ValueError("no axes")
    limits = tuple(map(Limit.parse, begin.limits.splitlines()))
    plan = combine(JobSpec(), axes, limits, StopRule(percent=begin.percent), begin.rounds or 0)
    if begin.preset:
        # Each of its points is measured once.
        curves = tuple(replace(curve, search=replace(curve.search, next_load=each_once)) for curve in plan.curves)
        following = None if isinstance(begin.following, UnsetType) else tuple(begin.following.splitlines())
        plan = replace(plan, curves=curves, preset=begin.preset, part=begin.part or "", following=following)
    return plan, len(plan.curves)


def _left_out(data: Data) -> LeftOut | None:
    curve, load = data.get("curve"), data.get("load")
    if not isinstance(curve, int) or not isinstance(load, int):
        return None
    return LeftOut(Point(curve, load), str(data.get("reason", "")))


SWEEP_EVENTS = StudyEvents("sweep", "point", TRIALS, _SweepBegin, _plan, RecordedSweep, _left_out)
