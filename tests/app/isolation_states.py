"""Isolation curves that stand still: made of a device by law, at any moment, without a load."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from collectors.model import Sample
from engine.isolation.aggressor_group import LimitHierarchy
from engine.isolation.caps import NO_CAP, Cap
from engine.isolation.events import begin_event, end_event, point_event
from engine.isolation.plan import IsolationPlan, plan_isolation
from engine.isolation.runner import IsolationRunner
from engine.isolation.study import AggressorLoad, IsolationPoint, IsolationStudy
from engine.isolation.victim import VictimSecond
from engine.job.knobs import Knobs
from engine.job.spec import JobSpec, Permissions, TargetSpec
from engine.replacing import replace
from engine.results.histogram import bucket_of
from engine.running.control import LoadControl
from engine.study.order import Study
from engine.study.points import StudyPoints
from tests.app.still_sessions import RemembersRequests, with_events
from tui.load.load_controller import LoadController
from tui.screens.sweep.isolation_rows import IsolationState
from tui.sweep.session import StudySession
from tui.sweep.state import StudyState, SweepPhase

RATE = 500
ALL = 100
_ALONE_MS = 1.0
_DEVICE_IOPS = 12_000.0
_CAPS = (Cap(2000), Cap(400))


def isolation_plan() -> IsolationPlan:
    job = JobSpec(targets=(TargetSpec("/nonexistent/diska"),), knobs=Knobs(rate_iops=float(RATE)))
    return plan_isolation(job, vary=("qd=1,4,16,64",), caps=[cap.text for cap in _CAPS], seconds=6)


def _second(latency_ms: float) -> VictimSecond:
    """A second in which 4 % of the I/Os took three times as long as the others."""
    latency_ns = int(latency_ms * 1e6 / 3)
    slow = RATE // 25
    buckets = np.array([bucket_of(latency_ns), bucket_of(3 * latency_ns)], np.uint16)
    total_ns = latency_ns * (RATE + 2 * slow)
    return VictimSecond(1.0, RATE, 0, total_ns, buckets, np.array([RATE - slow, slow], np.uint64))


def _point(load: AggressorLoad | None, cap: Cap, seconds: int) -> IsolationPoint:
    """The p99 of the victim rises with what the aggressor gets of the device; it varies from second to second."""
    most = min(load.queue_depth * 800.0, _DEVICE_IOPS) if load else 0.0
    iops = min(most, float(cap.reads_per_s or most))
    typical_ms = _ALONE_MS * (1 + 8 * iops / _DEVICE_IOPS)
    return IsolationPoint(
        load, cap, iops if load else None, tuple(_second(typical_ms * (1 + 0.1 * (at % 3))) for at in range(seconds))
    )


def isolation_points(plan: IsolationPlan) -> list[IsolationPoint]:
    """All points in the order in which they are measured."""
    beside = [_point(load, cap, plan.seconds) for cap in (NO_CAP, *_CAPS) for load in plan.loads]
    return [_point(None, NO_CAP, plan.seconds), *beside, _point(None, NO_CAP, plan.seconds)]


class StillIsolation(RemembersRequests, StudySession):
    """A session that measures nothing: it shows what it is given, and remembers what it is asked."""

    def __init__(self, control: LoadControl, count: int = 6, **changes: Any) -> None:
        plan = isolation_plan()
        controller = LoadController(control, plan.victim, Permissions())
        hierarchy, sysfs = LimitHierarchy(Path("/nonexistent"), unified=True), Path("/nonexistent")
        super().__init__(Study(plan, partial(IsolationRunner, hierarchy=hierarchy, sysfs=sysfs)), controller)
        points = isolation_points(plan)
        study = replace(plan.study, targets=("/nonexistent/diska",), points=tuple(points[:count]))
        now = replace(points[count], aggressor_iops=None, seconds=points[count].seconds[:3]) if points[count:] else None
        measured = StudyPoints((study.points,), (), now)
        phase, ended = (SweepPhase.MEASURING, "") if now else (SweepPhase.ENDED, "complete")
        state = StudyState(study, measured, phase, plan.points, 62.0, ended)
        self.shown = replace(state, **changes)
        self.asked: list[object] = []

    @property
    def state(self) -> IsolationState:
        return self.shown


def isolation_events(ended: str = "") -> list[tuple[str, Any]]:
    """Texts and data of a whole curve."""
    plan = isolation_plan()
    study: IsolationStudy = replace(plan.study, targets=("/nonexistent/diska",))
    happened = [begin_event(plan, study)]
    for point in isolation_points(plan):
        study = replace(study, points=(*study.points, point))
        happened.append(point_event(study, point))
    return [*happened, end_event(replace(study, ended=ended))]


def with_isolation(samples: Sequence[Sample], first: int = 5) -> list[Sample]:
    """The samples with a recorded curve: a point at each sample from `first` on, then its end."""
    return with_events(samples, isolation_events(), first)
