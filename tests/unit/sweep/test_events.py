"""A sweep as events: what is recorded reads back as it was, at every moment."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import pytest

from collectors.session.objects import event_from_json, event_to_json
from engine.errors import LunscopeError
from engine.events import Event, EventKind
from engine.job.spec import JobSpec
from engine.replacing import replace
from engine.study.decoded import decoded, encoded
from engine.study.points import LeftOut
from engine.sweep.axes import parse_axis
from engine.sweep.limit import Limit
from engine.sweep.plan import make_plan
from engine.sweep.points import Point
from engine.sweep.runner import SweepResult, SweepRunner
from engine.sweep.trial import Trial
from tests.recorded import recorded_sweep
from tests.unit.sweep.fake_load import FakeLoad
from tests.unit.sweep.queue_model import corner


@functools.cache
def _swept() -> tuple[SweepResult, tuple[Event, ...]]:
    plan = make_plan(JobSpec(), tuple(map(parse_axis, ("qd=1..32", "bs=4k,8k"))), (Limit.parse("p99<=5ms"),))
    load, events = FakeLoad(corner(8)), list[Event]()
    load.refuses[4] = LunscopeError("no room")

    def note(text: str, data: Mapping[str, Any]) -> None:
        events.append(Event.now(EventKind.LOAD, text, **data))

    return SweepRunner(plan, load, clock=load.clock, note=note).run(), tuple(events)


def test_recorded_sweep_is_what_was_measured() -> None:
    result, events = _swept()
    again = recorded_sweep([event_from_json(event_to_json(event)) for event in events])
    assert again is not None
    assert again.plan.axes == result.plan.axes
    assert again.plan.limits == result.plan.limits
    assert again.points.trials == tuple(curve.trials for curve in result.curves)
    assert LeftOut(Point(0, 4), "no room") in again.points.left_out
    assert again.ended == "complete"


def test_recorded_sweep_is_as_of_the_moment() -> None:
    _, events = _swept()
    assert recorded_sweep([]) is None
    for count in range(1, 6):
        sweep = recorded_sweep(events[:count])
        assert sweep is not None
        assert sweep.points.done + len(sweep.points.left_out) == count - 1
        assert not sweep.ended


@pytest.mark.parametrize(
    "change", [{"curve": 99}, {"curve": "x"}, {"trial": "{"}, {"trial": "[]"}, {"trial": None}, {"trial": "{}"}]
)
def test_damaged_point_is_left_out(change: Mapping[str, Any]) -> None:
    _, events = _swept()
    damaged = replace(events[1], data={**events[1].data, **change})
    sweep = recorded_sweep([events[0], damaged, events[2]])
    assert sweep is not None
    assert sweep.points.done == 1


@pytest.mark.parametrize("change", [{"axes": "depth=1"}, {"axes": ""}, {"limits": "fast"}])
def test_sweep_that_this_version_cannot_read_is_none(change: Mapping[str, Any]) -> None:
    _, events = _swept()
    assert recorded_sweep([replace(events[0], data={**events[0].data, **change}), *events[1:]]) is None


def test_trials_keep_their_targets_and_those_of_earlier_versions_have_none() -> None:
    result, _ = _swept()
    trial = result.curves[0].trials[0]
    assert [share.name for share in trial.targets] == ["disk a", "disk b"]
    document = encoded(trial)
    assert decoded(Trial, document) == trial
    document.pop("targets")
    assert decoded(Trial, document) == replace(trial, targets=())
    assert decoded(Trial, {**encoded(trial), "targets": [{"name": 1}]}) is None
