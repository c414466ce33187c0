"""Hosts as an axis of a sweep: plans, efficiency, and where throughput stops to scale."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from collectors.fleet.fleet_sweep_load import _common_duration_s
from collectors.reports.documents.hosts import scaling_section
from engine.job.spec import JobSpec, TargetSpec
from engine.sweep.axes import parse_axis
from engine.sweep.hosts_axis import HostScaling, scaling_document, scaling_of
from engine.sweep.hosts_knob import FleetKnobs, hosts_knob
from engine.sweep.knee import answer
from engine.sweep.plan import SweepPlan, make_plan
from engine.sweep.points import Point
from engine.sweep.runner import CurveResult, SweepResult
from engine.sweep.trial import Trial
from tests.unit.documents.printed import shown, unwrapped


def plan_of(*vary: str) -> SweepPlan:
    axes = tuple(parse_axis(text, {"hosts": hosts_knob(8)}) for text in vary)
    return make_plan(JobSpec(targets=(TargetSpec("/dev/null"),)), axes)


def measured(plan: SweepPlan, iops: Callable[[int, int], float]) -> tuple[HostScaling, ...]:
    """Scaling of a fleet whose throughput follows a law of hosts and queue depth."""
    curves = []
    for curve in plan.curves:
        trials = []
        for load in curve.search.loads:
            knobs = plan.knobs_at(curve, load)
            assert isinstance(knobs, FleetKnobs)
            rate = iops(knobs.hosts, knobs.queue_depth)
            trials.append(Trial(load=load, in_flight=1, iops=rate, latency_ns=1e6, latencies_ns={"p99": 2e6}))
        curves.append(CurveResult(curve, tuple(trials), answer(trials)))
    return scaling_of(SweepResult(plan, tuple(curves), "complete", (), 1.0))


@pytest.mark.parametrize(
    ("law", "stops_at", "says"),
    [
        (lambda hosts, _qd: 1000.0 * hosts, None, "scales to 8 hosts: 8 hosts do 8.00 x 1, 100 % per host"),
        (lambda hosts, _qd: 1000.0 * min(hosts, 4), 4, "stops to scale at 4 hosts: each host from 4 to 8 adds 0 %"),
        (lambda _hosts, _qd: 1000.0, 1, "8 hosts do 1.00 x 1, 12 % per host"),
        (lambda hosts, _qd: 1000.0 * hosts**0.9, None, "scales to 8 hosts"),
        (lambda _hosts, _qd: 0.0, None, "nothing about scaling"),
    ],
    ids=["linear", "shared limit at 4", "one limit", "nearly linear", "no throughput"],
)
def test_the_answer_follows_the_law(law: Callable[[int, int], float], stops_at: int | None, says: str) -> None:
    (scaling,) = measured(plan_of("hosts=1,2,4,8"), law)
    assert scaling.stops_at == stops_at
    assert says in scaling.words
    assert says in unwrapped(shown([scaling_section(scaling)]))
    assert scaling_document([scaling])[0]["stops_at"] == stops_at


def test_other_axes_are_compared_each_for_itself() -> None:
    found = measured(plan_of("hosts=1,2,4", "qd=1,16"), lambda hosts, qd: 100.0 * min(hosts * qd, 32))
    assert {each.name: each.stops_at for each in found} == {"qd=1": None, "qd=16": 2}


def test_knobs_of_a_host_have_no_number_of_hosts() -> None:
    plan = plan_of("hosts=2,4", "bs=8k")
    knobs = plan.knobs_at(plan.curves[0], 4)
    assert isinstance(knobs, FleetKnobs)
    assert knobs.hosts == 4
    assert type(knobs.of_a_host) is type(plan.job.knobs)
    assert plan.point_name(Point(0, 4)) == "bs=8k hosts=4"


def test_hosts_that_are_read_one_after_the_other_add_up_to_the_sum_of_their_rates() -> None:
    duration_s = _common_duration_s([1000, 3000], [1.0, 1.5])
    assert 4000 / duration_s == pytest.approx(1000 / 1.0 + 3000 / 1.5)
    assert _common_duration_s([1000, 0], [1.0, 0.0]) == 0.0
    assert _common_duration_s([0, 0], [1.0, 2.0]) == 1.0
