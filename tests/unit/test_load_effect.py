"""What is said of a knob turn: windows of equal length of one setting each, the same live and from a recording."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.model import Sample, Step
from engine.events import Event, EventKind
from engine.replacing import replace
from tests.unit.load_steps import SECOND_NS, RecordedRun, Stretch, recorded_run
from tui.load.effect import FEWEST_IOS, LONGEST_WINDOW_S, Effect, change_pct, has_enough_ios, last_effect
from tui.load.load_ticks import tick_of
from tui.load.turn_intervals import TurnIntervals
from tui.transport import ReplayTransport

IOPS = (1000, 1700, 2600, 3300, 4100, 5200, 6100)
"""One for each stretch, so that a figure says which it came from."""


def effect_at(run: RecordedRun, now_ns: int) -> Effect:
    return last_effect([tick_of(step) for step in run.steps], run.events, now_ns)


def at_end(run: RecordedRun) -> int:
    """The last sample before the load ended."""
    return [step.current.monotonic_ns for step in run.steps if "load" in step.current.tables][-2]


def test_both_windows_are_as_long_as_the_shorter() -> None:
    run = recorded_run([Stretch(20, 1000, 1_000_000), Stretch(200, 3000, 2_000_000)])
    start_ns = run.steps[0].current.monotonic_ns
    early = effect_at(run, start_ns + 25 * SECOND_NS)
    assert (early.before.length_s, early.after.length_s) == (5.0, 5.0)
    late = effect_at(run, at_end(run))
    assert (late.before.length_s, late.after.length_s) == (18.0, 18.0)
    assert (late.before.iops, late.after.iops) == (1000.0, 3000.0)
    assert (late.before.mean_ms, late.after.mean_ms) == pytest.approx((1.0, 2.0))
    assert (late.before.p99_ms, late.after.p99_ms) == pytest.approx((1.0, 2.0), rel=0.02)
    assert (late.before.max_ms, late.after.max_ms) == (1.0, 2.0)
    assert late.text == "queue depth 1 -> 2"


def test_windows_stop_growing() -> None:
    run = recorded_run([Stretch(300, 1000), Stretch(300, 3000)])
    effect = effect_at(run, at_end(run))
    assert (effect.before.length_s, effect.after.length_s) == (LONGEST_WINDOW_S, LONGEST_WINDOW_S)


def test_a_new_run_knows_nothing_of_the_old() -> None:
    first = recorded_run([Stretch(20, 1000), Stretch(20, 3000)])
    second = recorded_run([Stretch(30, 500)], run=2, start_s=1100)
    ticks = [tick_of(step) for step in (*first.steps, *second.steps)]
    events = (*first.events, *second.events)
    begun = last_effect(ticks, events, second.steps[0].current.monotonic_ns)
    assert (begun.turned_ns, begun.before.length_s, begun.after.length_s) == (None, 0.0, 0.0)
    later = last_effect(ticks, events, at_end(second))
    assert (later.turned_ns, later.before.length_s, later.after.iops) == (None, 0.0, 500.0)


def test_an_ended_run_keeps_its_effect_without_its_last_interval() -> None:
    run = recorded_run([Stretch(20, 1000), Stretch(20.0, 3000)])
    over = effect_at(run, run.steps[-1].current.monotonic_ns)
    assert over.ended
    assert over.after.iops == 3000.0


def test_ios_issued_before_the_turn_count_on_neither_side() -> None:
    """After a turn from I/Os of 4 s to short ones, the long ones still come back for 4 s."""
    old = 4_000_000_000
    run = recorded_run([Stretch(20, 100, old), Stretch(4, 200, old), Stretch(20, 3000, turns=False)])
    turned_ns = next(event.monotonic_ns for event in run.events if event.kind == "knob")
    assert effect_at(run, turned_ns + 4 * SECOND_NS).after.length_s == 0
    effect = effect_at(run, at_end(run))
    assert (effect.before.iops, effect.before.max_ms) == (100, 4000)
    assert (effect.after.iops, effect.after.max_ms) == (3000, 1)


def _epoch(step: Step) -> int:
    table = step.current.tables.get("load")
    return 0 if table is None else int(table.column("epoch")[0])


def test_turns_in_quick_succession_are_one() -> None:
    run = recorded_run([Stretch(30, 1000), Stretch(0.3, 1500), Stretch(2.0, 1700), Stretch(30, 4000)])
    effect = effect_at(run, at_end(run))
    assert effect.text == "queue depth 1 -> 4"
    assert (effect.before.iops, effect.after.iops) == (1000, 4000)


@pytest.mark.parametrize(
    ("knob", "turns", "text"),
    [
        ("rate_iops", ((None, 500.0), (500.0, 1_500_000.0)), "rate limit unlimited -> 1500000"),
        ("rate_iops", ((1000.0, 100.5), (100.5, None)), "rate limit 1000 -> unlimited"),
        ("rate_iops", ((1000.0, 500.0), (500.0, 1000.0)), "rate limit 1000 -> 1000 in 3 turns"),
        ("of a later version", ((1, 2), (2, 3)), "of a later version 1 -> 3"),
    ],
)
def test_several_turns_of_a_knob_read_as_the_event_of_one_would(
    knob: str, turns: Sequence[tuple[float | None, float | None]], text: str
) -> None:
    run = recorded_run([Stretch(30, 1000), Stretch(0.3, 1500), Stretch(2.0, 1700), Stretch(30, 4000)])
    changes = iter((*turns, turns[-1]))
    events = [
        replace(event, data={**event.data, "knob": knob, **dict(zip(("from", "to"), next(changes), strict=True))})
        if event.kind is EventKind.KNOB
        else event
        for event in run.events
    ]
    assert effect_at(replace(run, events=tuple(events)), at_end(run)).text == text


def test_three_intervals_are_three_seconds_though_they_vary_a_little() -> None:
    run = recorded_run([Stretch(30, 1000), Stretch(3.9, 1500), Stretch(30, 4000)], interval_s=0.9985)
    effect = effect_at(run, at_end(run))
    assert effect.text == "queue depth 2 -> 3"
    assert 2.9 < effect.before.length_s < 3
    assert effect.is_long_enough


def test_few_ios_give_no_percentage_and_no_percentile() -> None:
    run = recorded_run([Stretch(20, 3), Stretch(20, 6)])
    effect = effect_at(run, at_end(run))
    assert effect.is_long_enough
    assert not has_enough_ios(effect)
    assert math.isnan(effect.before.p99_ms)
    assert effect.before.ios < FEWEST_IOS


def test_a_gap_in_a_recording_is_bridged_by_neither_window() -> None:
    run = recorded_run([Stretch(20, 1000), Stretch(30, 3000)])
    steps = list(run.steps)
    place = next(number for number, step in enumerate(steps) if _epoch(step) == 1) + 10
    steps[place] = Step(None, steps[place].current)
    effect = last_effect([tick_of(step) for step in steps], run.events, at_end(run))
    assert effect.after.length_s <= 9
    assert effect.after.iops == 3000


def test_without_a_turn_there_is_no_before() -> None:
    run = recorded_run([Stretch(20, 1000)])
    effect = effect_at(run, at_end(run))
    assert (effect.turned_ns, effect.before.length_s, effect.after.iops) == (None, 0.0, 1000.0)
    assert last_effect((), (), 0) == Effect()
    assert math.isnan(change_pct(math.nan, 1.0))
    assert change_pct(1000, 3000) == pytest.approx(200)


SCHEDULES = st.lists(st.sampled_from([0.3, 0.7, 1.5, 2.5, 3.5, 5.0, 12.0, 40.0, 130.0]), min_size=1, max_size=6)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(seconds=SCHEDULES, share=st.floats(0, 1), interval_s=st.sampled_from([0.5, 1.0, 2.0]))
def test_windows_are_equal_and_of_one_setting_each(seconds: list[float], share: float, interval_s: float) -> None:
    stretches = [Stretch(length, iops) for length, iops in zip([10.0, *seconds], IOPS, strict=False)]
    run = recorded_run(stretches, interval_s=interval_s)
    moments = [step.current.monotonic_ns for step in run.steps]
    now_ns = moments[round(share * (len(moments) - 1))]
    effect = effect_at(run, now_ns)
    before, after = effect.before, effect.after
    if before.length_s and after.length_s:
        assert before.length_s == pytest.approx(after.length_s, rel=0.0101)
    for level in (before, after):
        if level.length_s:
            assert any(level.iops == pytest.approx(one.iops, abs=1.1 / level.length_s) for one in stretches)
    if effect.turned_ns is not None and after.length_s:
        turns = sum(event.kind == "knob" and event.monotonic_ns <= effect.turned_ns for event in run.events)
        assert after.iops == pytest.approx(stretches[turns].iops, abs=1.1 / after.length_s)


class _Recording(ReplayTransport):
    """The transport of a recording of which nothing but its samples is asked."""

    def __init__(self, run: RecordedRun) -> None:
        self._run = run
        self.reads = 0

    @property
    def paused(self) -> bool:
        return True

    def past(self, end_ns: int, count: int) -> Iterator[Step]:
        self.reads += 1
        upto = [step for step in self._run.steps if step.current.time_ns <= end_ns]
        return iter(upto[-count:])


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(seconds=SCHEDULES, cursors=st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_a_recording_gives_what_the_live_screen_gave(seconds: list[float], cursors: list[float]) -> None:
    stretches = [Stretch(length, iops) for length, iops in zip([10.0, *seconds], IOPS, strict=False)]
    first, second = recorded_run(stretches), recorded_run(stretches[::-1], run=2, start_s=2000)
    steps = (*first.steps, *(step for step in second.steps if step.previous is not None))
    steps = (Step(None, steps[0].current), *(Step(one.current, two.current) for one, two in pairwise(steps)))
    run = RecordedRun(steps, (*first.events, *second.events))
    live, shown = TurnIntervals(), dict[int, Effect]()
    for step in steps:
        live.add(step)
        now_ns = step.current.monotonic_ns
        shown[now_ns] = live.effect(_known(run, now_ns), now_ns)
    replay, recording = TurnIntervals(), _Recording(run)
    for cursor in cursors:
        sample: Sample = steps[round(cursor * (len(steps) - 1))].current
        step = next(one for one in steps if one.current is sample)
        replay.move(step)
        replay.fetch(run.events, recording, step, 1.0)
        now_ns = sample.monotonic_ns
        assert repr(replay.effect(run.events, now_ns)) == repr(shown[now_ns])


def _known(run: RecordedRun, now_ns: int) -> list[Event]:
    return [event for event in run.events if event.monotonic_ns <= now_ns]
