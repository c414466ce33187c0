"""A sweep as events of a session."""

from __future__ import annotations

import functools
import json

from msgspec import Struct

from engine.errors import UsageError
from engine.job.spec import JobSpec
from engine.replacing import replace
from engine.statistics.batch_means import StopRule
from engine.study.decoded import encoded
from engine.study.events import BEGIN, END, LEFT_OUT, Data, StudyEvents, StudyReading, from_json
from engine.sweep.axes import parse_axis
from engine.sweep.hosts_knob import MOST_HOSTS, hosts_knob
from engine.sweep.limit import Limit
from engine.sweep.plan import SweepPlan, combine
from engine.sweep.points import LeftOut, Point, SweepPoints
from engine.sweep.trial import Trial

_KEY = "sweep"
_POINT = "point"


class RecordedSweep(Struct, frozen=True):
    """A recorded sweep at one moment."""

    plan: SweepPlan
    """Axes and limits over the default job; what was measured is in `points`, the job in the events of the load."""
    points: SweepPoints
    ended: str
    """"complete", "stopped", or why the load ended; empty while it goes on."""


def begin_event(plan: SweepPlan) -> tuple[str, Data]:
    """Text and data of the start of a sweep."""
    axes, limits = ([each.text for each in group] for group in (plan.axes, plan.limits))
    data: Data = {_KEY: BEGIN, "axes": "\n".join(axes), "limits": "\n".join(limits), "percent": plan.rule.percent}
    if plan.preset:
        data = {**data, "preset": plan.preset, "part": plan.part}
    return f"sweep over {' x '.join(axes)}: {plan.points} points", data


def trial_event(plan: SweepPlan, curve: int, trial: Trial) -> tuple[str, Data]:
    """Text and data of a measurement; a recording has the counters of the devices itself."""
    name = plan.point_name(Point(curve, round(trial.load)))
    data: Data = {
        _KEY: _POINT,
        "curve": curve,
        "trial": json.dumps(encoded(replace(trial, devices=None)), allow_nan=False),
    }
    return f"sweep: {name}: {trial.iops:,.0f} IOPS, {trial.latency_ns / 1e6:.3f} ms", data


def left_out_event(plan: SweepPlan, left_out: LeftOut) -> tuple[str, Data]:
    """Text and data of a point that is not measured."""
    at = left_out.point
    data: Data = {_KEY: LEFT_OUT, "curve": at.curve, "load": at.load, "reason": left_out.reason}
    return f"sweep: {plan.point_name(at)}: {left_out.words}", data


def end_event(ended: str) -> tuple[str, Data]:
    """Text and data of the end."""
    return f"sweep: {ended}", {_KEY: END, "how": ended}


def _plan(data: Data) -> tuple[SweepPlan, int] | None:
    percent = data.get("percent")
    try:
        axes = tuple(parse_axis(text, _OF_FLEETS) for text in str(data.get("axes", "")).splitlines())
        limits = tuple(map(Limit.parse, str(data.get("limits", "")).splitlines()))
    except UsageError:
        return None
    if not axes:
        return None
    rule = StopRule(percent=float(percent) if isinstance(percent, int | float) else 99.0)
    plan = combine(JobSpec(), axes, limits, rule)
    preset, part = (str(data.get(key) or "") for key in ("preset", "part"))
    if preset:
        # Each of its points is measured once.
        curves = tuple(replace(curve, search=replace(curve.search, is_grid=True)) for curve in plan.curves)
        plan = replace(plan, curves=curves, preset=preset, part=part)
    return plan, len(plan.curves)


_OF_FLEETS = {"hosts": hosts_knob(MOST_HOSTS)}


@functools.lru_cache(maxsize=8192)
def _trial(text: str) -> Trial | None:
    return from_json(Trial, text)


def _found(reading: StudyReading[SweepPlan, Trial]) -> RecordedSweep:
    trials, left_out = tuple(map(tuple, reading.trials)), map(_left_out, reading.left_out)
    known = tuple(each for each in left_out if each is not None and 0 <= each.point.curve < len(trials))
    return RecordedSweep(reading.plan, SweepPoints(trials, known), reading.ended or "")


def _left_out(data: Data) -> LeftOut | None:
    curve, load = data.get("curve"), data.get("load")
    if not isinstance(curve, int) or not isinstance(load, int):
        return None
    return LeftOut(Point(curve, load), str(data.get("reason", "")))


SWEEP_EVENTS = StudyEvents(_KEY, _plan, _trial, _found)
