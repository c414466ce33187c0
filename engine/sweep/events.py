"""A sweep as events of a session: written as it goes on, read back up to any moment of a recording.

The events are of kind load; versions that know no sweeps show their texts.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from msgspec import Struct

from engine.errors import UsageError
from engine.events import Event
from engine.job.spec import JobSpec
from engine.replacing import replace
from engine.statistics.batch_means import StopRule
from engine.strict_json import JsonError, load_json_object
from engine.sweep.axes import parse_axis
from engine.sweep.hosts_knob import MOST_HOSTS, hosts_knob
from engine.sweep.limit import Limit
from engine.sweep.plan import SweepPlan, combine
from engine.sweep.points import LeftOut, Point, SweepPoints
from engine.sweep.trial import Trial
from engine.sweep.trial_file import read_trial, trial_document

Data: TypeAlias = Mapping[str, str | float | None]
_KEY = "sweep"
_BEGIN, _POINT, _LEFT_OUT, _END = "begin", "point", "left out", "end"


class RecordedSweep(Struct, frozen=True):
    """A recorded sweep at one moment."""

    plan: SweepPlan
    """Its axes and limits over the default job: what was measured is in `points`, the job in the events of the load."""
    points: SweepPoints
    ended: str
    """"complete", "stopped", or why the load ended; empty while it goes on."""


def begin_event(plan: SweepPlan) -> tuple[str, Data]:
    """Text and data of the start of a sweep."""
    axes, limits = ([each.text for each in group] for group in (plan.axes, plan.limits))
    data: Data = {_KEY: _BEGIN, "axes": "\n".join(axes), "limits": "\n".join(limits), "percent": plan.rule.percent}
    if plan.preset:
        data = {**data, "preset": plan.preset, "part": plan.part}
    return f"sweep over {' x '.join(axes)}: {plan.points} points", data


def trial_event(plan: SweepPlan, curve: int, trial: Trial) -> tuple[str, Data]:
    """Text and data of a measurement; a recording has the counters of the devices itself."""
    name = plan.point_name(Point(curve, round(trial.load)))
    data: Data = {
        _KEY: _POINT,
        "curve": curve,
        "trial": json.dumps(trial_document(replace(trial, devices=None)), allow_nan=False),
    }
    return f"sweep: {name}: {trial.iops:,.0f} IOPS, {trial.latency_ns / 1e6:.3f} ms", data


def left_out_event(plan: SweepPlan, left_out: LeftOut) -> tuple[str, Data]:
    """Text and data of a point that is not measured."""
    at = left_out.point
    data: Data = {_KEY: _LEFT_OUT, "curve": at.curve, "load": at.load, "reason": left_out.reason}
    return f"sweep: {plan.point_name(at)}: {left_out.words}", data


def end_event(ended: str) -> tuple[str, Data]:
    """Text and data of the end."""
    return f"sweep: {ended}", {_KEY: _END, "how": ended}


def is_sweep_begin(event: Event) -> bool:
    """Whether a sweep begins with this event."""
    return event.data.get(_KEY) == _BEGIN


def recorded_sweep(events: Iterable[Event]) -> RecordedSweep | None:
    """Read the last sweep that began among these events; None without one, or one that this version cannot read."""
    found: _Reading | None = None
    for event in events:
        match event.data.get(_KEY):
            case "begin":
                found = _begun(event.data)
            case "end" if found is not None:
                found.ended = str(event.data.get("how", ""))
            case "point" if found is not None:
                found.add_trial(event.data)
            case "left out" if found is not None:
                found.add_left_out(event.data)
    return None if found is None else found.recorded


class _Reading(Struct):
    """A sweep whose events are being read; what is damaged is left out."""

    plan: SweepPlan
    trials: list[list[Trial]]
    left_out: list[LeftOut]
    ended: str = ""

    @property
    def recorded(self) -> RecordedSweep:
        points = SweepPoints(tuple(map(tuple, self.trials)), tuple(self.left_out))
        return RecordedSweep(self.plan, points, self.ended)

    def add_trial(self, data: Data) -> None:
        curve, trial = data.get("curve"), _trial(str(data.get("trial")))
        if isinstance(curve, int) and 0 <= curve < len(self.trials) and trial is not None:
            self.trials[curve].append(trial)

    def add_left_out(self, data: Data) -> None:
        curve, load = data.get("curve"), data.get("load")
        if isinstance(curve, int) and 0 <= curve < len(self.trials) and isinstance(load, int):
            self.left_out.append(LeftOut(Point(curve, load), str(data.get("reason", ""))))


_OF_FLEETS = {"hosts": hosts_knob(MOST_HOSTS)}


@functools.lru_cache(maxsize=8192)
def _trial(text: str) -> Trial | None:
    try:
        return read_trial(load_json_object(text))
    except JsonError:
        return None


def _begun(data: Data) -> _Reading | None:
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
    return _Reading(plan, [[] for _ in plan.curves], [])
