"""The knobs of a recorded load as they stood at each moment."""

from __future__ import annotations

import pytest

from collectors.session.recorded_loads import recorded_loads, scenario_of
from engine.errors import UsageError
from engine.events import Event, EventKind
from engine.job.describe import knob_changes
from engine.job.distribution import Zipf
from engine.job.file import dump_job
from engine.job.spec import JobSpec, Knobs, Mode, TargetSpec
from engine.replacing import replace
from tui.load.state_text import recorded_state

JOB = JobSpec((TargetSpec("/dev/x"), TargetSpec("/dev/y")), Knobs(queue_depth=4, stripe_width=2))
TURNED = replace(JOB.knobs, queue_depth=8, distribution=Zipf(0.9), mode=Mode.SYNC, rate_iops=500.0)


def event(kind: EventKind, second: int, text: str = "", **data: str | float | None) -> Event:
    return Event(kind, text, second * 10**9, second * 10**9, data)


def recording() -> list[Event]:
    turns = [
        event(EventKind.KNOB, 20, change.text, knob=change.knob, **{"from": change.before, "to": change.after})
        for change in knob_changes(JOB.knobs, TURNED)
    ]
    start = event(EventKind.LOAD, 10, "load started", backend="uring", job=dump_job(JOB))
    return [start, *turns, event(EventKind.LOAD, 30, "load stopped after 20.0 s", ended="stopped")]


def test_knobs_are_those_in_force() -> None:
    events = recording()
    assert recorded_state(events, 9 * 10**9) is None
    first = recorded_state(events, 15 * 10**9)
    assert first is not None
    assert first.job is not None
    assert (first.job.knobs, first.elapsed_s, first.ended) == (JOB.knobs, 5.0, "")
    later = recorded_state(events, 25 * 10**9)
    assert later is not None
    assert later.job is not None
    assert later.job.knobs == TURNED
    over = recorded_state(events, 99 * 10**9)
    assert over is not None
    assert (over.elapsed_s, over.ended) == (20.0, "load stopped after 20.0 s")


def test_a_job_that_cannot_be_read_is_not_known() -> None:
    start = event(EventKind.LOAD, 10, "load started", backend="uring", job="no = job")
    state = recorded_state([start], 11 * 10**9)
    assert state is not None
    assert state.job is None
    turned = event(EventKind.KNOB, 11, "?", knob="unheard_of", to=3)
    state = recorded_state([recording()[0], turned], 12 * 10**9)
    assert state is not None
    assert state.job is None


def test_of_several_loads_at_once_each_has_its_own_turns_and_end() -> None:
    other = replace(JOB, name="other")
    events = [
        event(EventKind.LOAD, 10, "[a] load started", job=dump_job(JOB), load_name="a"),
        event(EventKind.LOAD, 10, "[b] load started", job=dump_job(other), load_name="b"),
        event(EventKind.LOAD, 20, "[a] load finished after 10.0 s", ended="runtime", load_name="a"),
        event(EventKind.LOAD, 30, "[b] load finished after 20.0 s", ended="runtime", load_name="b"),
    ]
    first, second = recorded_loads(events)
    assert [load.end and load.end.monotonic_ns for load in (first, second)] == [20 * 10**9, 30 * 10**9]
    both, one, over = (recorded_state(events, second * 10**9) for second in (15, 25, 35))
    assert both is not None
    assert one is not None
    assert over is not None
    assert (both.at_once, one.at_once) == (("a", "b"), ())
    assert (both.ended, one.ended, over.ended) == ("", "", "[b] load finished after 20.0 s")
    with pytest.raises(UsageError, match=r"2 loads: choose one with --load: 1 .* \[a\], 2 .* \[b\]"):
        scenario_of(events, None, 40 * 10**9, "s.lun")
    assert scenario_of(events, 2, 40 * 10**9, "s.lun").job.name == "other"
