"""Properties of derivation that hold for any input, hostile recordings included."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from collectors.all_subjects import SCHEMAS
from collectors.derive.counter_deltas import column_deltas
from collectors.model import (
    Column,
    Device,
    Frame,
    Histograms,
    HistogramScale,
    HostFacts,
    Kind,
    Rows,
    Sample,
    Table,
    Topology,
)
from collectors.rates import derive
from collectors.tables.block.schema import DISK
from tests.unit.raw_samples import RAW_MISSING, SECOND_NS

U64 = st.one_of(
    st.integers(0, RAW_MISSING),
    st.integers(0, 2_000),
    st.sampled_from([0, 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**63, RAW_MISSING - 1, RAW_MISSING]),
)
ROWS = 4


VALUES = st.lists(U64, min_size=16, max_size=16)
"""From which the cells of a sample are taken: to draw each of its hundreds by itself takes most of the time."""


ROW_KEYS = [keys for count in range(ROWS + 1) for keys in itertools.permutations([f"k{i}" for i in range(ROWS)], count)]
"""Some of the rows, or none, in any order; as few draws as possible: they take more time than what is tested."""


KEYS = st.lists(st.sampled_from(ROW_KEYS), min_size=len(SCHEMAS), max_size=len(SCHEMAS))
MOST_CELLS = ROWS * sum(len(schema.columns) for schema in SCHEMAS.values())
CHOICES = st.binary(min_size=MOST_CELLS, max_size=MOST_CELLS)
"""A value for each cell. A strategy that is made once is checked once, not at each draw."""


@st.composite
def tables(draw: st.DrawFn) -> dict[str, Table]:
    keys = draw(KEYS)
    values = np.array(draw(VALUES), np.uint64)
    chosen = values[np.frombuffer(draw(CHOICES), np.uint8) % len(values)]
    made, end = {}, 0
    for (name, schema), of_table in zip(SCHEMAS.items(), keys, strict=True):
        start, end = end, end + len(of_table) * len(schema.columns)
        raw = chosen[start:end].reshape(len(of_table), len(schema.columns))
        made[name] = Table(schema, Rows(of_table, of_table), raw)
    return made


CELLS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 65_535), U64), max_size=8)


@st.composite
def histograms(draw: st.DrawFn) -> Histograms:
    cells = draw(CELLS)
    columns = list(zip(*cells, strict=True)) or [(), (), (), ()]
    types = (np.uint32, np.uint8, np.uint16, np.uint64)
    row, series, bucket, count = (np.array(column, kind) for column, kind in zip(columns, types, strict=True))
    keys = tuple(f"k{i}" for i in range(ROWS))
    return Histograms(HistogramScale(1, 6), Rows(keys, keys), ("read", "write"), row, series, bucket, count)


FACTS = st.sampled_from(
    list(itertools.product((None, True, False), (False, True), ("", "4.4.0", "6.18.0", "x"), (32, 64, 0)))
)
"""Whether the disk counts, whether it is above others, the kernel and its word size."""


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    iostats, bio_based, kernel, long_bits = draw(FACTS)
    device = Device("k0", "k0", "disk", 8, 0, iostats=iostats, bio_based=bio_based)
    return Sample(
        draw(st.integers(0, 2**63)),
        draw(st.sampled_from([0, 1, SECOND_NS, 3 * SECOND_NS, 2**62])),
        Topology({"k0": device}, HostFacts(kernel=kernel, long_bits=long_bits)),
        draw(tables()),
        {"load": draw(histograms())},
        (),
        draw(st.integers(0, 2**40)),
        draw(st.integers(0, 2**40)),
    )


OF_ONE_CPU = frozenset({"agent_cpu_pct"})
"""CPU time of several threads as a share of one CPU."""


def assert_sane(frame: Frame) -> None:
    for name, table in frame.tables.items():
        for field_id, column in table.columns.items():
            assert column.dtype == np.float64
            assert column.shape == (len(table.rows),), (name, field_id)
            assert not np.isinf(column).any(), (name, field_id)
            assert not (column < 0).any(), (name, field_id)
            if (field_id.endswith("_pct") and field_id not in OF_ONE_CPU) or field_id == "heat":
                assert not (column > 100.0000001).any(), (name, field_id)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(previous=st.none() | samples(), current=samples())
def test_any_raw_values_derive_without_error_infinity_or_negatives(previous: Sample | None, current: Sample) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_sane(derive(previous, current))


def _counts(drawn: bytes) -> NDArray[np.uint64]:
    return (np.frombuffer(drawn, np.uint16) % 10_001).astype(np.uint64).reshape(ROWS, len(DISK.columns))


GROWING = st.binary(min_size=2 * ROWS * len(DISK.columns), max_size=2 * ROWS * len(DISK.columns)).map(_counts)


def disk_sample(at_s: float, values: NDArray[np.uint64], keys: tuple[str, ...]) -> Sample:
    return Sample(0, round(at_s * SECOND_NS), Topology(), {"disk": Table(DISK, Rows(keys, keys), values)})


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(start=GROWING, grown=GROWING, order=st.permutations(range(ROWS)), split=st.permutations(range(ROWS)))
def test_the_order_of_rows_carries_no_meaning(
    start: NDArray[np.uint64], grown: NDArray[np.uint64], order: list[int], split: list[int]
) -> None:
    keys = tuple(f"k{i}" for i in range(ROWS))
    before = start
    after = before + grown
    plain = derive(disk_sample(0, before, keys), disk_sample(1, after, keys)).tables["disks"]
    mixed = derive(
        disk_sample(0, before[order], tuple(keys[i] for i in order)),
        disk_sample(1, after[split], tuple(keys[i] for i in split)),
    ).tables["disks"]
    for field_id, column in plain.columns.items():
        np.testing.assert_allclose(mixed.columns[field_id], column[split], rtol=1e-12, err_msg=field_id)
    for field_id, codes in plain.tiers.items():
        np.testing.assert_array_equal(mixed.tiers[field_id], codes[split])


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(
    start=GROWING,
    first=GROWING,
    second=GROWING,
    first_s=st.floats(0.5, 100),
    second_s=st.floats(0.5, 100),
)
def test_a_longer_interval_is_the_weighted_mean_of_its_parts(
    start: NDArray[np.uint64], first: NDArray[np.uint64], second: NDArray[np.uint64], first_s: float, second_s: float
) -> None:
    keys = tuple(f"k{i}" for i in range(ROWS))
    a = start
    b = a + first
    c = b + second
    one, two, three = (disk_sample(at, values, keys) for at, values in ((0, a), (first_s, b), (first_s + second_s, c)))
    left, right, whole = derive(one, two), derive(two, three), derive(one, three)
    for field_id in (field for field in whole.tables["disks"].columns if field.endswith("_per_s")):
        parts = [frame.tables["disks"].columns[field_id] * frame.elapsed_s / whole.elapsed_s for frame in (left, right)]
        np.testing.assert_allclose(whole.tables["disks"].columns[field_id], sum(parts), rtol=1e-9, atol=1e-9)


@given(start=st.integers(0, 2**40), grown=st.integers(0, 2**31))
def test_a_wrapped_counter_grows_as_an_unwrapped_one(start: int, grown: int) -> None:
    column = [Column("ms", Kind.COUNTER32)]
    old, new = (np.array([[value % 2**32]], np.uint64) for value in (start, start + grown))
    assert column_deltas(column, old, new, elapsed_s=1.0)["ms"][0] == grown


@given(start=st.integers(0, 2**32 - 1), grown=st.integers(0, 2**27))
def test_a_narrow_kernel_long_grows_as_a_wide_one(start: int, grown: int) -> None:
    column = [Column("ios", Kind.COUNTER)]
    old, new = (np.array([[value % 2**32]], np.uint64) for value in (start, start + grown))
    assert column_deltas(column, old, new, elapsed_s=1.0, wrap=float(2**27))["ios"][0] == grown


@given(old=U64, new=U64)
def test_a_wide_counter_never_guesses(old: int, new: int) -> None:
    before, now = (np.array([[value]], np.uint64) for value in (old, new))
    grown = column_deltas([Column("ios", Kind.COUNTER)], before, now, elapsed_s=2.0)["ios"][0]
    if RAW_MISSING in (old, new) or new < old or new - old > 2**34:
        assert math.isnan(grown)
    else:
        assert grown == pytest.approx(new - old)
