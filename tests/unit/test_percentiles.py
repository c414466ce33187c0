"""Percentiles of sparse histograms against numpy on the expanded values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.derive.percentiles import (
    RowCells,
    bucket_bounds_ns,
    bucket_midpoints_ns,
    merged,
    minimum_ios,
    percentiles_ns,
)
from collectors.model import Histograms, HistogramScale, Rows
from engine import _native
from tests.unit.latency_ticks import bucket_of

SCALE = HistogramScale(unit_ns=1, sub_bits=6)
COARSE = HistogramScale(unit_ns=64, sub_bits=4)


@pytest.mark.parametrize("scale", [SCALE, COARSE])
@given(value_ns=st.integers(0, 2**45))
def test_a_value_lies_within_the_bounds_of_its_bucket(scale: HistogramScale, value_ns: int) -> None:
    low, above = bucket_bounds_ns(scale, np.array([bucket_of(scale, value_ns)], np.uint16))
    assert low[0] <= value_ns < above[0]
    assert above[0] - low[0] <= max(scale.unit_ns, low[0] / (1 << scale.sub_bits))


def test_buckets_join_without_gaps() -> None:
    low, above = bucket_bounds_ns(SCALE, np.arange(4_000, dtype=np.uint16))
    np.testing.assert_array_equal(above[:-1], low[1:])
    middle = bucket_midpoints_ns(SCALE, np.arange(200, dtype=np.uint16))
    np.testing.assert_array_equal(middle[:128], np.arange(128))
    assert middle[128] == 128.5


def test_the_largest_bucket_number_is_a_finite_time() -> None:
    assert np.isfinite(bucket_midpoints_ns(SCALE, np.array([65_535], np.uint16))).all()


def test_the_engines_scale_is_the_one_tested_here() -> None:
    expected = getattr(_native, "HISTOGRAM_SUB_BITS", SCALE.sub_bits)
    assert expected == SCALE.sub_bits


VALUES = st.lists(st.integers(0, 10**10), min_size=1, max_size=60)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(rows=st.lists(VALUES, min_size=1, max_size=5), repeat=st.sampled_from([1, 40, 1_000]), seed=st.integers(0, 9))
def test_percentiles_equal_numpys_within_one_bucket(rows: list[list[int]], repeat: int, seed: int) -> None:
    cells = [(row, bucket_of(SCALE, value), repeat) for row, values in enumerate(rows) for value in values]
    order = np.random.default_rng(seed).permutation(len(cells))
    row, bucket, count = (np.array([cells[i][part] for i in order]) for part in range(3))
    given_cells = RowCells(SCALE, row.astype(np.uint32), bucket.astype(np.uint16), count.astype(np.uint64))
    percents = (50.0, 99.0, 99.9)
    found = percentiles_ns(given_cells, len(rows), percents)
    for position, percent in enumerate(percents):
        for number, values in enumerate(rows):
            if len(values) * repeat < minimum_ios(percent):
                assert math.isnan(found[position, number])
                continue
            exact = np.percentile(np.repeat(values, repeat), percent, method="inverted_cdf")
            wanted = bucket_midpoints_ns(SCALE, np.array([bucket_of(SCALE, int(exact))], np.uint16))[0]
            assert found[position, number] == wanted


def test_how_many_ios_a_percentile_needs() -> None:
    assert [minimum_ios(percent) for percent in (50, 90, 99, 99.9)] == [1, 10, 100, 1_000]


def cells_of(count: int) -> RowCells:
    return RowCells(SCALE, np.zeros(1, np.uint32), np.array([7], np.uint16), np.array([count], np.uint64))


@pytest.mark.parametrize(("percent", "needed"), [(50.0, 1), (99.0, 100), (99.9, 1_000)])
def test_no_percentile_from_too_few_ios(percent: float, needed: int) -> None:
    assert math.isnan(percentiles_ns(cells_of(needed - 1), 1, (percent,))[0, 0])
    assert percentiles_ns(cells_of(needed), 1, (percent,))[0, 0] == 7.0


def test_rows_without_cells_and_cells_without_rows() -> None:
    cells = RowCells(SCALE, np.array([9, 2], np.uint32), np.array([1, 5], np.uint16), np.array([4, 4], np.uint64))
    assert percentiles_ns(cells, 4, (50.0,))[0].tolist() == pytest.approx(
        [math.nan, math.nan, 5, math.nan], nan_ok=True
    )
    nothing = RowCells(SCALE, np.zeros(0, np.uint32), np.zeros(0, np.uint16), np.zeros(0, np.uint64))
    assert np.isnan(percentiles_ns(nothing, 3, (50.0,))).all()
    assert percentiles_ns(cells, 0, (50.0,)).shape == (1, 0)


KEYS = ("a", "b", "c")


@st.composite
def parts(draw: st.DrawFn) -> Histograms:
    keys = tuple(draw(st.permutations(KEYS))[: draw(st.integers(1, 3))])
    series = draw(st.sampled_from([("read",), ("read", "write"), ("write", "read")]))
    cell = st.tuples(
        st.integers(0, len(keys) - 1), st.integers(0, len(series) - 1), st.integers(0, 5), st.integers(0, 2**50)
    )
    columns = list(zip(*draw(st.lists(cell, min_size=1, max_size=6)), strict=True))
    row, which, bucket, count = (
        np.array(column, kind)
        for column, kind in zip(columns, (np.uint32, np.uint8, np.uint16, np.uint64), strict=True)
    )
    return Histograms(SCALE, Rows(keys, keys), series, row, which, bucket, count)


def counted(histograms: Histograms) -> dict[tuple[str, str, int], int]:
    found: dict[tuple[str, str, int], int] = {}
    for row, which, bucket, count in zip(
        histograms.row, histograms.series_index, histograms.bucket, histograms.count, strict=True
    ):
        key = (histograms.rows.keys[row], histograms.series[which], int(bucket))
        found[key] = found.get(key, 0) + int(count)
    return found


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(a=parts(), b=parts(), c=parts())
def test_merging_adds_and_is_associative(a: Histograms, b: Histograms, c: Histograms) -> None:
    left, right = merged([merged([a, b]), c]), merged([a, merged([b, c])])
    assert counted(left) == counted(right)
    wanted: dict[tuple[str, str, int], int] = {}
    for part in (a, b, c):
        for key, count in counted(part).items():
            wanted[key] = wanted.get(key, 0) + count
    assert counted(left) == wanted
    assert len(left.count) == len(wanted)


def test_what_cannot_be_merged() -> None:
    empty = (np.zeros(0, np.uint32), np.zeros(0, np.uint8), np.zeros(0, np.uint16), np.zeros(0, np.uint64))
    fine = Histograms(SCALE, Rows((), ()), (), *empty)
    coarse = Histograms(COARSE, Rows((), ()), (), *empty)
    with pytest.raises(ValueError, match="scales"):
        merged([fine, coarse])
    with pytest.raises(ValueError, match="no histograms"):
        merged([])
    assert len(merged([fine, fine]).count) == 0
