"""Sweeps that stand still: made of a device by law, at any moment, without a load."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from collectors.model import Sample
from engine.job.spec import JobSpec, Permissions, TargetSpec
from engine.replacing import replace
from engine.running.control import LoadControl
from engine.statistics.batch_means import Stop
from engine.study.order import Study
from engine.study.points import LeftOut
from engine.sweep.axes import parse_axis
from engine.sweep.events import begin_event, end_event, left_out_event, trial_event
from engine.sweep.limit import Limit
from engine.sweep.plan import SweepPlan, make_plan
from engine.sweep.points import Point, SweepPoints
from engine.sweep.runner import SweepRunner
from engine.sweep.target_share import TargetShare
from engine.sweep.trial import SearchStage, Trial
from tests.app.still_sessions import RemembersRequests, with_events
from tests.unit.sweep.queue_model import bend
from tui.load.load_controller import LoadController
from tui.screens.sweep.rows import SweepState
from tui.sweep.session import StudySession
from tui.sweep.state import StudyState, SweepPhase

TARGETS = tuple(TargetSpec(f"/nonexistent/disk{letter}") for letter in "abcd")
JOB = JobSpec(targets=TARGETS)
AXES = ("qd=1..64", "stripe_width=1,2,4")
SERVICE_S = 0.0005
HOT = 3
"""Number of the target that is slower than its peers."""


def swept_plan(*axes: str, limits: Sequence[str] = ("p99<=5ms",)) -> SweepPlan:
    return make_plan(JOB, tuple(map(parse_axis, axes or AXES)), tuple(map(Limit.parse, limits)))


def trial_at(load: int, width: int, start_s: float) -> Trial:
    """A measurement of a device that serves 8 at a time on each target; the last of four targets is slower."""
    in_flight = load * width
    iops = bend(8 * width)(in_flight)
    latency_ns = in_flight / iops * 1e9
    shares = [(1.6 if number == HOT else 1.0, f"disk{letter}") for number, letter in enumerate("abcd"[:width])]
    mean = sum(factor for factor, _ in shares) / width
    targets = tuple(
        TargetShare(name, round(4 * iops / width), iops / width, latency_ns * factor / mean, 4 * latency_ns * factor)
        for factor, name in shares
    )
    return Trial(
        load=float(load),
        in_flight=float(in_flight),
        iops=iops,
        latency_ns=latency_ns,
        half_width=0.015,
        latencies_ns={
            "p50": 0.9 * latency_ns,
            "p90": 2 * latency_ns,
            "p99": 4 * latency_ns,
            "p99.9": 7 * latency_ns,
            "max": 9 * latency_ns,
        },
        bytes_per_s=4096 * iops,
        start_s=start_s,
        duration_s=4.0,
        ios=round(4 * iops),
        stop=Stop.NOISY if load == 64 else Stop.PRECISE,
        stage=SearchStage.LADDER,
        targets=targets if width > 1 else (),
    )


def swept_points(plan: SweepPlan, count: int) -> SweepPoints:
    """The first measurements of the ladders; the point after them is being measured, qd=2 of the second was skipped."""
    trials: list[list[Trial]] = [[] for _ in plan.curves]
    left_out, measuring = list[LeftOut](), None
    for curve in plan.curves:
        for load in curve.search.loads:
            point, done = Point(curve.index, load), sum(map(len, trials))
            if (curve.index, load) == (1, 2):
                left_out.append(LeftOut(point, ""))
            elif (curve.index, load) == (1, 4):
                left_out.append(LeftOut(point, "no room"))
            elif done < count:
                width = {knob.key: value for knob, value in curve.values}.get("stripe_width", 1)
                trials[curve.index].append(trial_at(load, width, 5.0 * done))
            elif measuring is None:
                measuring = point
    done_by_now = [each for each in left_out if measuring is None or each.point < measuring]
    return SweepPoints(tuple(map(tuple, trials)), tuple(done_by_now), measuring)


class StillSession(RemembersRequests, StudySession):
    """A session that measures nothing: it shows what it is given, and remembers what it is asked."""

    def __init__(self, control: LoadControl, count: int = 10, plan: SweepPlan | None = None, **changes: Any) -> None:
        plan = plan or swept_plan()
        super().__init__(Study(plan, SweepRunner), LoadController(control, plan.armed, Permissions()))
        points = swept_points(plan, count)
        state = StudyState(plan, points, SweepPhase.MEASURING, plan.trials, 93.0, notes=("disk a: a note",))
        self.shown = replace(state, **changes)
        self.asked: list[object] = []

    @property
    def state(self) -> SweepState:
        return self.shown


def with_sweep(
    samples: Sequence[Sample], count: int, first: int = 5, *, ends: bool = True, plan: SweepPlan | None = None
) -> list[Sample]:
    """The samples with a recorded sweep: a measurement at each sample from `first` on."""
    plan = plan or swept_plan()
    points = swept_points(plan, count)
    trials = [(curve, trial) for curve, of_curve in enumerate(points.trials) for trial in of_curve]
    happened = [begin_event(plan)]
    happened += [trial_event(plan, curve, trial) for curve, trial in trials]
    happened += [left_out_event(plan, each) for each in points.left_out]
    happened += [end_event("complete")] if ends else []
    return with_events(samples, happened, first)
