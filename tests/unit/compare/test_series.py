"""Figures over time: weights, tiers, rows that come and go, and merging when there are many."""

from __future__ import annotations

import numpy as np
import pytest

from collectors.compare.series import MOST_CELLS, TableSeries
from collectors.model import Frame, FrameTable, Rows, Tier, Topology
from collectors.registry import fields_of, get_field

FIELDS = tuple(get_field("disks", name) for name in ("iops", "await_ms", "max_ms", "busy_pct"))


def _add(
    series: TableSeries, tick: int, columns: dict[str, list[float]], keys: tuple[str, ...] = ("a",), **tiers: list[Tier]
) -> None:
    figures = {name: np.array(values, np.float64) for name, values in columns.items()}
    marks = {name: np.array(codes, np.uint8) for name, codes in tiers.items()}
    table = FrameTable(Rows(keys, keys), figures, marks)
    series.add(Frame(tick, tick, 1.0, {"disks": table}, Topology()), table)


def test_mean_of_a_latency_is_that_of_an_io_and_a_peak_counts_once_per_interval() -> None:
    series = TableSeries(FIELDS)
    for _ in range(MOST_CELLS // 2):
        _add(series, 0, {"iops": [900], "await_ms": [1], "max_ms": [2], "busy_pct": [10]})
        _add(series, 1, {"iops": [100], "await_ms": [10], "max_ms": [40], "busy_pct": [30]})
    _add(series, 2, {"iops": [900], "await_ms": [1], "max_ms": [2], "busy_pct": [10]})
    found = {field.id: series.of("a", position)[0][0] for position, field in enumerate(FIELDS)}
    assert series.per_cell == 2
    assert found == pytest.approx({"iops": 500, "await_ms": 1.9, "max_ms": 21, "busy_pct": 20})
    assert series.largest("a", "max_ms") == 40


def test_memory_is_bounded_and_no_interval_is_lost() -> None:
    series, count = TableSeries(FIELDS), 5 * MOST_CELLS + 3
    for tick in range(count):
        _add(series, tick, {"iops": [tick], "busy_pct": [1]})
    values, weights, _ = series.of("a", 0)
    assert len(values) <= MOST_CELLS
    assert weights.sum() == count
    assert (values * weights).sum() == sum(range(count))
    assert series.ends_ns[-1] == count - 1
    assert len(series.ends_ns) == len(values)


def test_row_that_appears_later_has_no_figures_before() -> None:
    series = TableSeries(FIELDS)
    _add(series, 0, {"iops": [5]})
    _add(series, 1, {"iops": [5, 7]}, keys=("a", "b"))
    _add(series, 2, {"iops": [8]}, keys=("b",))
    assert series.keys == ("a", "b")
    np.testing.assert_equal(series.of("a", 0)[0], [5, 5, np.nan])
    np.testing.assert_equal(series.of("b", 0)[0], [np.nan, 7, 8])


def test_tier_of_an_idle_interval_says_nothing_and_the_lower_one_of_merged_intervals_counts() -> None:
    series = TableSeries(FIELDS)
    for _ in range(MOST_CELLS // 2):
        _add(series, 0, {"iops": [0], "busy_pct": [0]}, busy_pct=[Tier.EXACT])
        _add(series, 0, {"iops": [9], "busy_pct": [50]}, busy_pct=[Tier.SAMPLED])
    assert series.of("a", 3)[2].tolist() == [0, Tier.SAMPLED] * (MOST_CELLS // 2)
    _add(series, 0, {"iops": [9], "busy_pct": [50]}, busy_pct=[Tier.EXACT])
    assert series.of("a", 3)[2].tolist() == [Tier.SAMPLED] * (MOST_CELLS // 2) + [Tier.EXACT]
    assert series.varying == {"busy_pct"}


def test_every_mean_per_io_is_weighted_by_ios_of_its_kind() -> None:
    weights = {field.id: field.per for field in fields_of("disks")}
    assert weights["read_await_ms"] == weights["read_bytes_per_io"] == "reads_per_s"
    assert weights["write_await_ms"] == weights["write_bytes_per_io"] == "writes_per_s"
    assert weights["queue_ms"] == weights["service_ms"] == weights["await_ms"] == "iops"
    assert {weights[name] for name in ("iops", "busy_pct", "in_flight", "max_ms", "queue_max_ms")} == {""}
