"""Which of many equally hot disks comes first, and why: latency against its usual one and that of its peers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from collectors.baseline import LEAST_SAMPLES, LatencyBaseline
from collectors.hotness import hottest, hottest_of, latency_reason, peer_latencies, with_hot_order
from collectors.model import Frame, FrameTable, Rows, Topology
from engine.replacing import replace

SECOND_NS = 1_000_000_000


def rows_of(count: int) -> Rows:
    return Rows(tuple(f"k{row}" for row in range(count)), tuple(f"sd{row}" for row in range(count)))


def frame(at: int, heat: list[float], await_ms: list[float], rows: Rows | None = None) -> Frame:
    columns = {"heat": np.array(heat), "await_ms": np.array(await_ms)}
    table = FrameTable(rows or rows_of(len(heat)), columns)
    return Frame(at * SECOND_NS, at * SECOND_NS, 1.0, {"disks": table}, Topology())


def after_a_while(await_ms: list[float], now_ms: list[float], heat: list[float]) -> Frame:
    baseline, rows = LatencyBaseline(), rows_of(len(heat))
    for at in range(1, LEAST_SAMPLES + 10):
        baseline.add(frame(at, heat, await_ms, rows))
    return baseline.add(frame(LEAST_SAMPLES + 10, heat, now_ms, rows))


def test_of_equally_hot_disks_the_one_that_is_slower_than_usual_is_hottest() -> None:
    found = after_a_while([1.3] * 40, [1.3] * 29 + [8.2] + [1.3] * 10, [100.0] * 40)
    assert hottest_of(found.tables["disks"], found) == "k29"
    assert latency_reason(found, 29) == "await 8.2 ms, 6x its usual 1.3 ms; peers 1.3 ms"
    assert latency_reason(found, 3) == ""


def test_seconds_of_latency_have_all_their_digits() -> None:
    found = after_a_while([1.3] * 4, [1.3, 1.3, 1.3, 12_345.0], [100.0] * 4)
    assert latency_reason(found, 3) == "await 12345 ms, 9496x its usual 1.3 ms; peers 1.3 ms"


def test_a_disk_that_is_always_slow_is_unusual_among_its_peers_only() -> None:
    found = after_a_while([1.0, 1.0, 1.0, 9.0], [1.0, 1.0, 1.0, 9.0], [100.0] * 4)
    assert hottest_of(found.tables["disks"], found) == "k3"
    assert latency_reason(found, 3) == "await 9 ms, usual 9 ms; peers 1 ms"


def test_latency_decides_among_ties_only() -> None:
    found = after_a_while([1.0] * 4, [1.0, 9.0, 1.0, 1.0], [90.0, 50.0, 20.0, 10.0])
    assert hottest_of(found.tables["disks"], found) == "k0"
    order = with_hot_order(found.tables["disks"], found).columns["heat:order"]
    assert np.argsort(-order).tolist() == [0, 1, 2, 3]


def test_without_unusual_latency_the_order_is_that_of_hotness() -> None:
    table = frame(1, [98.0, 99.5, math.nan, 99.0], [1.0] * 4).tables["disks"]
    assert hottest(table) == "k1"
    order = with_hot_order(table, frame(1, [98.0, 99.5, math.nan, 99.0], [1.0] * 4, table.rows)).columns["heat:order"]
    assert np.argsort(-order).tolist() == [1, 3, 0, 2]


def test_figures_stay_as_they_are() -> None:
    found = after_a_while([1.0] * 4, [1.0, 9.0, 1.0, 1.0], [90.0, 50.0, 20.0, 10.0])
    ordered = with_hot_order(found.tables["disks"], found)
    assert ordered.columns["heat"] is found.tables["disks"].columns["heat"]
    assert set(ordered.columns) - set(found.tables["disks"].columns) == {"heat:order"}


def test_few_peers_say_nothing() -> None:
    table = frame(1, [1.0, 1.0], [1.0, 9.0]).tables["disks"]
    assert np.isnan(peer_latencies(table, Topology())).all()


def test_the_usual_latency_needs_a_number_of_samples() -> None:
    baseline, rows = LatencyBaseline(), rows_of(1)
    usual = [
        float(baseline.add(frame(at, [1.0], [2.0 if at % 2 else math.nan], rows)).usual_ms["disks"][0])
        for at in range(1, 2 * LEAST_SAMPLES + 2)
    ]
    assert math.isnan(usual[2 * LEAST_SAMPLES - 2])
    assert usual[-1] == 2.0


@pytest.mark.parametrize("seed", range(10))
def test_it_converges_to_the_median(seed: int) -> None:
    values = np.random.default_rng(seed).lognormal(1.0, 0.5, 2000)
    baseline, rows = LatencyBaseline(), rows_of(1)
    for at, value in enumerate(values.tolist(), 1):
        found = baseline.add(frame(at, [1.0], [value], rows))
    assert float(found.usual_ms["disks"][0]) == pytest.approx(float(np.median(values)), rel=0.15)


def test_a_step_back_in_time_forgets_and_rows_keep_theirs() -> None:
    found = after_a_while([1.0, 2.0], [1.0, 2.0], [1.0, 1.0])
    baseline = LatencyBaseline()
    both, other = rows_of(2), Rows(("k1",), ("sd1",))
    for at in range(1, LEAST_SAMPLES + 2):
        baseline.add(frame(at, [1.0, 1.0], [1.0, 2.0], both))
    assert baseline.add(frame(30, [1.0], [2.0], other)).usual_ms["disks"].tolist() == [2.0]
    assert np.isnan(baseline.add(frame(5, [1.0], [2.0], other)).usual_ms["disks"]).all()
    assert latency_reason(replace(found, usual_ms={}), 0) == ""
