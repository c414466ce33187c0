"""When alerts are raised and cleared: holding times, hysteresis, missing values, gaps, rows that come and go, noise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from collectors.alerts.parse import parse_rule
from collectors.alerts.watch import MOST_EVENTS, AlertWatch
from collectors.model import Frame, FrameTable, Rows, Topology
from engine.events import Event, EventKind
from engine.replacing import replace
from tests.unit.test_block_tables import did
from tests.unit.test_block_tables import frame as block_frame
from tests.unit.test_path_verdict import with_paths

SECOND_NS = 1_000_000_000
START_NS = 1_763_700_000 * SECOND_NS
NAN = math.nan
A, A_B = Rows(("a",), ("sda",)), Rows(("a", "b"), ("sda", "sdb"))


def numbered(count: int) -> Rows:
    return Rows(tuple(f"k{row}" for row in range(count)), tuple(f"sd{row}" for row in range(count)))


def frame(at_s: float, *await_ms: float, rows: Rows = A, elapsed_s: float = 1.0) -> Frame:
    table = FrameTable(rows, {"await_ms": np.array(await_ms)})
    now = round(at_s * SECOND_NS)
    return Frame(START_NS + now, now, elapsed_s, {"disks": table}, Topology())


def watch_of(*rules: str) -> AlertWatch:
    return AlertWatch([parse_rule(rule) for rule in rules])


def changes(watch: AlertWatch, series: list[float], start_s: float = 1.0) -> list[tuple[int, str]]:
    """Which samples raised or cleared the alert of one disk."""
    return [
        (index, str(event.data["change"]))
        for index, value in enumerate(series)
        for event in watch.observe(frame(start_s + index, value))
    ]


def test_an_alert_is_raised_when_the_limit_was_passed_for_the_whole_time() -> None:
    assert changes(watch_of("disks await_ms>20ms for 3s"), [30.0] * 5) == [(2, "raised")]
    assert changes(watch_of("disks await_ms>20ms for 3s"), [30, 30, 10, 30, 30, 10]) == []
    assert changes(watch_of("disks await_ms>20ms for 0s"), [10, 30]) == [(1, "raised")]
    assert changes(watch_of("disks await_ms<20ms for 2s"), [30, 10, 10]) == [(2, "raised")]


def test_at_the_limit_only_the_inclusive_comparison_holds() -> None:
    assert changes(watch_of("disks await_ms>20ms for 0s"), [20.0]) == []
    assert changes(watch_of("disks await_ms>=20ms for 0s"), [20.0]) == [(0, "raised")]


def test_it_is_cleared_after_a_shorter_time_well_below_the_limit() -> None:
    watch = watch_of("disks await_ms>20ms for 4s clear 2s")
    assert changes(watch, [30, 30, 30, 30, 19, 19, 19, 10, 30, 10, 10]) == [(3, "raised"), (10, "cleared")]


def test_a_missing_value_does_not_pass_a_limit() -> None:
    assert changes(watch_of("disks await_ms>20ms for 3s"), [30, 30, NAN, 30, 30]) == []
    assert changes(watch_of("disks await_ms<20ms for 0s"), [NAN]) == []
    watch = watch_of("disks await_ms>20ms for 1s clear 3s")
    assert changes(watch, [30, NAN, NAN, 30, NAN, NAN, NAN]) == [(0, "raised"), (6, "cleared")]


def test_jitter_of_the_samples_does_not_add_a_sample() -> None:
    watch = watch_of("disks await_ms>20ms for 3s")
    events = [watch.observe(frame(at, 30.0, elapsed_s=0.998)) for at in (1.0, 1.998, 2.996)]
    assert [len(each) for each in events] == [0, 0, 1]


def test_the_event_names_rule_object_value_limit_and_time() -> None:
    watch = watch_of("slow: disks await_ms>20ms for 2s clear 1s")
    found = [event for at, value in enumerate((35.2, 51.0, 3.0), 1) for event in watch.observe(frame(at, value))]
    raised, cleared = found
    assert raised.kind is EventKind.ALERT
    assert raised.text == "alert slow raised: sda await_ms 51 ms, limit >20 ms for 2 s"
    assert cleared.text == "alert slow cleared: sda after 1 s, worst 51 ms"
    wanted = {"rule": "slow", "change": "raised", "object": "sda", "value": 51.0, "limit": 20.0, "held_s": 2.0}
    assert wanted.items() <= dict(raised.data).items()
    assert (raised.time_ns, raised.monotonic_ns) == (START_NS + 2 * SECOND_NS, 2 * SECOND_NS)


def test_a_gap_begins_the_time_again_and_keeps_what_is_raised() -> None:
    watch = watch_of("disks await_ms>20ms for 3s clear 2s")
    assert changes(watch, [30, 30]) == []
    assert changes(watch, [30, 30], start_s=100) == []
    assert changes(watch, [30], start_s=102) == [(0, "raised")]
    assert watch.observe(replace(frame(500, 30), elapsed_s=NAN)) == ()
    assert watch.status[0].count == 1
    assert changes(watch, [1, 1], start_s=501) == [(1, "cleared")]


def test_a_step_back_in_time_begins_anew_without_events() -> None:
    watch = watch_of("disks await_ms>20ms for 2s")
    assert changes(watch, [30, 30, 30], start_s=50) == [(1, "raised")]
    assert changes(watch, [1, 30, 30], start_s=5) == [(2, "raised")]


def test_a_step_of_the_wall_clock_changes_nothing() -> None:
    watch = watch_of("disks await_ms>20ms for 2s")
    watch.observe(frame(1, 30.0))
    (event,) = watch.observe(replace(frame(2, 30.0), time_ns=START_NS - 3600 * SECOND_NS))
    assert event.data["change"] == "raised"


def test_rows_keep_their_state_when_others_come_and_go() -> None:
    watch = watch_of("disks await_ms>20ms for 3s")
    watch.observe(frame(1, 1.0, 30.0, rows=A_B))
    watch.observe(frame(2, 30.0, rows=Rows(("b",), ("sdb",))))
    (event,) = watch.observe(frame(3, 30.0, 1.0, rows=Rows(("b", "a"), ("sdb", "sda"))))
    assert event.data["object"] == "sdb"


def test_the_alert_of_an_object_that_is_gone_is_cleared() -> None:
    watch = watch_of("disks await_ms>20ms for 0s")
    watch.observe(frame(1, 30.0, 30.0, rows=A_B))
    (event,) = watch.observe(frame(2, 30.0))
    assert event.text.endswith("cleared: sdb after 1 s, worst 30 ms; it is gone")
    assert watch.status[0].count == 1
    (last,) = watch.observe(replace(frame(3, 1.0), tables={}))
    assert last.data["object"] == "sda"


def test_a_pattern_limits_the_rule_to_some_objects() -> None:
    watch = watch_of("disks await_ms>20ms for 0s on *B")
    assert [event.data["object"] for event in watch.observe(frame(1, 30.0, 30.0, rows=A_B))] == ["sdb"]


def test_a_rule_without_its_table_or_field_raises_nothing_and_is_known_as_such() -> None:
    watch = watch_of("cgroups iops>1 for 0s", "disks iops>1 for 0s")
    assert watch.observe(frame(1, 30.0)) == ()
    assert [status.seen for status in watch.status] == [False, False]


def test_a_storm_is_a_few_events_and_a_number() -> None:
    watch, many = watch_of("disks await_ms>20ms for 0s"), numbered(19_200)
    events = watch.observe(frame(1, *[30.0] * len(many), rows=many))
    assert len(events) == MOST_EVENTS + 1
    assert events[-1].data["more"] == len(many) - MOST_EVENTS
    assert watch.status[0].count == len(many)
    assert len(watch.status[0].worst) == MOST_EVENTS


def test_the_worst_comes_first() -> None:
    watch = watch_of("disks await_ms>20ms for 0s")
    watch.observe(frame(1, 30.0, 90.0, rows=A_B))
    assert [alert.name for alert in watch.status[0].worst] == ["sdb", "sda"]


@pytest.mark.parametrize("mean", [19.0, 20.0, 21.0])
def test_noise_at_the_limit_does_not_flap(mean: float) -> None:
    """200 disks with noise of 3 % around the limit, each with a seed of its own: none is ever cleared."""
    series = np.stack([np.random.default_rng(seed).normal(mean, 0.6, 600) for seed in range(200)])
    watch, rows = watch_of("disks await_ms>20ms for 5s"), numbered(200)
    found = [
        event.data["change"]
        for at in range(series.shape[1])
        for event in watch.observe(frame(at + 1.0, *series[:, at], rows=rows))
    ]
    assert "cleared" not in found
    assert len(found) > 0 or mean < 20.0


@pytest.mark.slow
def test_single_peaks_raise_nothing() -> None:
    """200 disks, each with a seed of its own."""
    peaks = np.stack([np.where(np.random.default_rng(seed).random(300) < 0.2, 100.0, 1.0) for seed in range(200)])
    peaks[:, 2::3] = 1.0
    watch, rows = watch_of("disks await_ms>20ms for 3s"), numbered(200)
    assert [watch.observe(frame(at + 1.0, *peaks[:, at], rows=rows)) for at in range(300)] == [()] * 300


def paths_frame(first: int, second: int, at: int, about: Topology) -> Frame:
    made = block_frame({"sd0h0": did(first, 1, 900), "sd0h1": did(second, 1, 900)}, about)
    return replace(made, monotonic_ns=at * SECOND_NS, time_ns=START_NS + at * SECOND_NS)


def observe_paths(watch: AlertWatch, first: int, second: int, start: int, count: int) -> list[Event]:
    about = with_paths(policy="service-time")
    rows = paths_frame(1, 1, 1, about).tables["paths"].rows
    found: list[Event] = []
    for at in range(start, start + count):
        made = paths_frame(first, second, at, about)
        same = replace(made.tables["paths"], rows=rows)
        found += watch.observe(replace(made, tables={**made.tables, "paths": same}))
    return found


def test_a_path_that_carries_more_than_its_peers_raises_and_names_itself() -> None:
    watch = watch_of("imbalance>1.5x for 3s clear 2s")
    assert observe_paths(watch, 500, 500, 1, 5) == []
    (raised,) = observe_paths(watch, 1000, 0, 6, 10)
    assert raised.data["object"] == "dm-0"
    assert "path sd0h0 carries" in raised.text
    (cleared,) = observe_paths(watch, 500, 500, 16, 20)
    assert cleared.data["change"] == "cleared"


def test_few_ios_say_nothing_about_balance() -> None:
    assert observe_paths(watch_of("imbalance for 2s"), 3, 0, 1, 20) == []


def test_paths_of_other_access_states_are_no_peers() -> None:
    watch, about = watch_of("imbalance for 1s"), with_paths(("optimized", "non-optimized"))
    assert [watch.observe(paths_frame(1000, 0, at, about)) for at in range(1, 10)] == [()] * 9


def test_other_rules_take_over_and_alerts_of_those_that_are_gone_are_cleared() -> None:
    watch = watch_of("slow: disks await_ms>20ms for 0s", "late: disks await_ms>10ms for 0s")
    raised = watch.observe(frame(1.0, 30.0))
    assert [(event.data["rule"], event.data["change"]) for event in raised] == [("slow", "raised"), ("late", "raised")]
    watch.take([parse_rule("late: disks await_ms>10ms for 0s"), parse_rule("slow: disks await_ms>40ms for 0s")])
    (event,) = watch.observe(frame(2.0, 30.0))
    assert (event.data["rule"], event.data["change"]) == ("slow", "cleared")
    assert event.text.endswith("the rule is gone")
    assert [(status.rule.name, status.count) for status in watch.status] == [("late", 1), ("slow", 0)]
    assert watch.observe(frame(3.0, 30.0)) == ()
    (again,) = watch.observe(frame(4.0, 50.0))
    assert (again.data["rule"], again.data["change"], again.data["limit"]) == ("slow", "raised", 40.0)
