"""Changes of counters from the native core: the same as cell by cell."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from collectors.derive.counter_deltas import column_deltas, wrap_limit
from collectors.model import MISSING, Column, Kind
from engine._native import counter_deltas

COLUMNS = [
    Column("kernel_ios", Kind.COUNTER),
    Column("kernel_ms", Kind.COUNTER32),
    Column("kernel_now", Kind.GAUGE),
    Column("sampler_sum", Kind.COUNTER),
    Column("sampler_amount", Kind.INTERVAL),
    Column("sampler_peak", Kind.PEAK),
]


def source_of(column: Column) -> str:
    return column.id.partition("_")[0]


def expected(before: list[int], now: list[int], wrap: float) -> list[float]:
    """The changes of one row, by the definition."""
    changes, reset = [], set()
    for column, old, new in zip(COLUMNS, before, now, strict=True):
        change = math.nan
        if column.kind is Kind.GAUGE:
            change = math.nan if new == MISSING else new
        elif MISSING in (old, new):
            pass
        elif column.kind in {Kind.INTERVAL, Kind.PEAK}:
            change = new
        elif column.kind is Kind.COUNTER32:
            change = (new - old) % 2**32
            change = math.nan if change > 2**31 else change
        elif new >= old:
            change = new - old
        elif old < 2**32 and wrap > 0 and (new - old) % 2**32 <= wrap:
            change = (new - old) % 2**32
        else:
            reset.add(source_of(column))
        changes.append(float(change))
    return [
        math.nan if source_of(column) in reset and column.kind is not Kind.GAUGE else change
        for column, change in zip(COLUMNS, changes, strict=True)
    ]


@pytest.mark.parametrize("wrap", [0.0, float(2**27)])
def test_changes_are_those_of_the_definition(wrap: float) -> None:
    random = np.random.default_rng(11)
    before = random.integers(2**32 - 10_000, 2**32, (700, len(COLUMNS)), np.uint64)
    now = before + random.integers(0, 9_000, before.shape, np.uint64)
    wrapped = random.random(now.shape) < 0.1
    now[wrapped] %= np.uint64(2**32)
    now[random.random(now.shape) < 0.02] = 3
    for values in (before, now):
        values[random.random(now.shape) < 0.02] = MISSING
    found = column_deltas(COLUMNS, before, now, elapsed_s=1.0, source_of=source_of, wrap=wrap)
    rows = [expected(old, new, wrap) for old, new in zip(before.tolist(), now.tolist(), strict=True)]
    assert np.isnan(rows).any(axis=0).all()
    np.testing.assert_array_equal(np.array([found[column.id] for column in COLUMNS]).T, rows)


def test_columns_in_another_memory_order_are_read_alike() -> None:
    before, now = np.arange(12, dtype=np.uint64).reshape(2, 6), np.arange(12, 24, dtype=np.uint64).reshape(2, 6)
    assert column_deltas(COLUMNS, np.asfortranarray(before), np.asfortranarray(now), elapsed_s=1.0)[
        "kernel_ios"
    ].tolist() == [12, 12]


@pytest.mark.parametrize(
    ("column", "most"),
    [("kernel_ios", 2.0**33), ("kernel_bytes", 2.0**46), ("kernel_sectors", 2.0**37), ("kernel_ms", 2.0**40),
     ("kernel_wait_ns", 2.0**58)],
)  # fmt: skip
@pytest.mark.parametrize(("elapsed_s", "seconds"), [(0.1, 1), (1.0, 1), (8.0, 8)])
def test_what_is_impossible_in_an_interval_is_missing_with_all_of_its_source(
    column: str, most: float, elapsed_s: float, seconds: int
) -> None:
    columns = [Column("kernel_other", Kind.COUNTER), Column(column, Kind.COUNTER), *COLUMNS[2:4]]
    before = np.array([[1, 100, 5, 7]] * 3, np.uint64)
    grown = int(most) * seconds
    now = before + np.array([[1, grown, 0, 2], [1, grown + 4096, 0, 2], [1, 1 << 63, 0, 2]], np.uint64)
    found = column_deltas(columns, before, now, elapsed_s=elapsed_s, source_of=source_of)
    missing = [math.nan, math.nan]
    np.testing.assert_array_equal(found["kernel_other"], [1, *missing])
    np.testing.assert_array_equal(found[column], [grown, *missing])
    assert (found["kernel_now"].tolist(), found["sampler_sum"].tolist()) == ([5, 5, 5], [2, 2, 2])


def test_a_counter_that_jumps_forward_once_spoils_its_interval_only() -> None:
    values = [np.array([[count]], np.uint64) for count in (10, 20, (1 << 63) + 30, (1 << 63) + 35)]
    pairs = itertools.pairwise(values)
    found = [column_deltas(COLUMNS[:1], old, new, elapsed_s=1.0)["kernel_ios"][0] for old, new in pairs]
    np.testing.assert_array_equal(found, [10, math.nan, 5])


def test_without_an_interval_nothing_wraps() -> None:
    assert wrap_limit(32, math.nan) == 0.0


def test_shapes_and_kinds_are_checked() -> None:
    table, kinds, sources = np.zeros((4, 2), np.uint64), np.zeros(2, np.uint8), np.zeros(2, np.uint16)
    with pytest.raises(ValueError, match="different shapes"):
        counter_deltas(table, table[:3], kinds, sources, 0)
    with pytest.raises(ValueError, match="different shapes"):
        counter_deltas(table, table, kinds[:1], sources, 0)
    with pytest.raises(ValueError, match="4 is no kind"):
        counter_deltas(table, table, kinds + np.uint8(4), sources, 0)
    with pytest.raises(TypeError, match="contiguous"):
        counter_deltas(table[:, :1], table[:, :1], kinds[:1], sources[:1], 0)
