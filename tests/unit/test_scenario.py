from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.session.recorded_loads import scenario_of
from engine.errors import RefusedError, UsageError
from engine.events import Event, EventKind
from engine.job.describe import knob_changes
from engine.job.distribution import Permutation, Zipf
from engine.job.file import dump_job
from engine.job.knobs import KNOBS
from engine.job.scenario import Scenario, Turn, dump_scenario, parse_scenario, require_permission, turn_between
from engine.job.spec import BlockShare, Flush, JobSpec, Knobs, Mode, PathPolicy, Permissions, TargetSpec
from engine.replacing import replace

BASE = JobSpec((TargetSpec("/dev/x"), TargetSpec("/dev/y")), Knobs(stripe_width=2), runtime_s=60.0)
OTHER = Knobs(
    queue_depth=9,
    stripe_width=1,
    blocks=(BlockShare(8192, 60.0), BlockShare(16384, 40.0)),
    read_pct=33.3,
    rate_iops=1234.5,
    write_blocks=(BlockShare(65536),),
    distribution=Permutation(),
    write_distribution=Zipf(1.1),
    mode=Mode.DSYNC,
    threads=3,
    fsync_every=7,
    flush=Flush.FDATASYNC,
    policy=PathPolicy.PATH_LOCKDOWN,
)


_KNOBS = st.builds(
    Knobs,
    queue_depth=st.integers(1, 4096),
    stripe_width=st.integers(1, 2),
    blocks=st.sampled_from([(BlockShare(4096),), OTHER.blocks]),
    read_pct=st.floats(0, 100),
    rate_iops=st.none() | st.floats(1e-3, 1e9),
    write_blocks=st.none() | st.just(OTHER.write_blocks),
    distribution=st.builds(Zipf, st.floats(0.01, 10)),
    write_distribution=st.none() | st.builds(Zipf, st.floats(0.01, 10)),
    mode=st.sampled_from(Mode),
    threads=st.integers(1, 1000),
    fsync_every=st.none() | st.integers(1, 10_000),
    flush=st.sampled_from(Flush),
    policy=st.sampled_from(PathPolicy),
)


@pytest.mark.slow
@given(st.lists(st.tuples(st.floats(0, 9), _KNOBS), min_size=1, max_size=4))
def test_scenarios_round_trip(steps: list[tuple[float, Knobs]]) -> None:
    job, turns, at_s = replace(BASE, knobs=steps[0][1]), list[Turn](), 0.0
    for (_, before), (pause_s, after) in itertools.pairwise(steps):
        at_s += pause_s
        turns.append(turn_between(at_s, before, after))
    scenario = Scenario(job, tuple(turns))
    assert parse_scenario(dump_scenario(scenario)) == scenario


def test_every_knob_can_be_turned_and_turned_back() -> None:
    """A knob that is added must be added to what scenarios hold."""
    there, back = turn_between(1.0, BASE.knobs, OTHER), turn_between(2.0, OTHER, BASE.knobs)
    assert {name for name, _ in there.changes} == set(KNOBS)
    scenario = Scenario(replace(BASE, runtime_s=None), (there, back))
    lines = dump_scenario(scenario)
    assert 'rate = "unlimited"' in lines
    found = parse_scenario(lines.replace('"permutation"', '"zipf:1.3"'))
    assert [knobs for _, knobs in found.states()][1] == BASE.knobs


HEAD = 'schema = "lunscope.scenario/1"\n[job]\nruntime = "30s"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = " + "9" * 5000, "s.toml: not a scenario in TOML"),
        ("x = " + "[" * 5000, "s.toml: not a scenario in TOML"),
        (HEAD + "[[turn]]\nat = 1\n" * 10001, "s.toml: 10001 turns: a scenario has at most 10000"),
    ],
)
def test_very_long_texts_are_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_scenario(text, "s.toml")
    assert str(caught.value).startswith(words)


def test_a_turn_that_writes_needs_permission_before_the_start() -> None:
    scenario = Scenario(BASE, (Turn(20.0, (("read_pct", 50.0), ("stripe_width", 1))),))
    with pytest.raises(RefusedError, match="/dev/x: job writes to it from 20s on: allow it with --allow-write /dev/x"):
        require_permission([[scenario]], Permissions())
    require_permission([[scenario]], Permissions(frozenset({"/dev/x"})))
    require_permission([[Scenario(replace(BASE, targets=(TargetSpec(),) * 2), scenario.turns)]], Permissions())


def test_a_later_job_that_writes_needs_it_too() -> None:
    writing = Scenario(replace(BASE, name="then", knobs=replace(BASE.knobs, read_pct=0.0)))
    with pytest.raises(RefusedError, match=r"/dev/[xy]: then writes to it: allow it with --allow-write"):
        require_permission([[Scenario(BASE)], [writing]], Permissions())
    require_permission([[writing]], Permissions())


# ------------------------------------------------------------------------------------------------------- of recordings


def event(kind: EventKind, at_s: float, **data: Any) -> Event:
    return Event(kind, "x", round(at_s * 1e9), round(at_s * 1e9), data)


def turned(at_s: float, epoch: int, before: Knobs, after: Knobs) -> list[Event]:
    return [
        event(EventKind.KNOB, at_s, knob=change.knob, to=change.after, epoch=epoch)
        for change in knob_changes(before, after)
    ]


def test_a_recorded_load_is_a_scenario() -> None:
    events = [
        event(EventKind.LOAD, 100.0, backend="uring", job=dump_job(BASE)),
        event(EventKind.NOTE, 101.0),
        *turned(102.5, 1, BASE.knobs, replace(OTHER, distribution=Zipf(2.0))),
        *turned(103.0, 2, replace(OTHER, distribution=Zipf(2.0)), BASE.knobs),
        event(EventKind.LOAD, 104.0, ended="stopped"),
        *turned(105.0, 3, BASE.knobs, OTHER),
    ]
    scenario = scenario_of(events, None, round(200e9), "r.luns")
    assert scenario.job == replace(BASE, runtime_s=4.0)
    assert [at_s for at_s, _ in scenario.states()] == [2.5, 3.0]
    assert [knobs for _, knobs in scenario.states()] == [replace(OTHER, distribution=Zipf(2.0)), BASE.knobs]


def test_a_runtime_that_was_over_is_kept() -> None:
    start = event(EventKind.LOAD, 100.0, job=dump_job(BASE))
    assert scenario_of([start, event(EventKind.LOAD, 160.03, ended="runtime")], None, 0, "r").job.runtime_s == 60.0
    assert scenario_of([start], None, round(112e9), "r").job.runtime_s == 12.0


def test_which_load_must_be_said_where_there_are_several() -> None:
    one = [event(EventKind.LOAD, 1.0, job=dump_job(BASE)), event(EventKind.LOAD, 2.0, ended="stopped")]
    two = [event(EventKind.LOAD, 5.0, job=dump_job(replace(BASE, seed=9))), event(EventKind.LOAD, 8.0, ended="failed")]
    with pytest.raises(UsageError, match="r: 2 loads: choose one with --load: 1 1970-01-01T00:00:01"):
        scenario_of(one + two, None, 0, "r")
    assert scenario_of(one + two, 2, 0, "r").job.seed == 9
    with pytest.raises(UsageError, match="--load 3: r has 1 to 2"):
        scenario_of(one + two, 3, 0, "r")
    with pytest.raises(UsageError, match="holds no load that says what it was"):
        scenario_of([event(EventKind.NOTE, 1.0)], None, 0, "r")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"knob": "warp", "to": 9}, "the knob warp is not of this version"),
        ({"knob": "queue_depth", "to": "x"}, "cannot be read"),
    ],
)
def test_strange_events_are_named(data: dict[str, Any], words: str) -> None:
    events = [event(EventKind.LOAD, 1.0, job=dump_job(BASE)), event(EventKind.KNOB, 2.0, **data, epoch=1)]
    with pytest.raises(UsageError, match=words):
        scenario_of(events, None, round(9e9), "r")
    bad = [event(EventKind.LOAD, 1.0, job="qd = 0")]
    with pytest.raises(UsageError, match="r: recorded job, line 1: qd: 0 is out of range"):
        scenario_of(bad, None, round(9e9), "r")
