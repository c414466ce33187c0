from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.job.sizes import (
    format_blocks,
    format_duration,
    format_number,
    format_size,
    human_size,
    parse_blocks,
    parse_duration,
    parse_size,
    round_up,
)
from engine.job.spec import BlockShare

GIB = 1 << 30


@given(st.integers(0, 2**63 - 1))
def test_sizes_round_trip(size: int) -> None:
    assert parse_size(format_size(size)) == size


@pytest.mark.parametrize(
    ("size", "compact", "human"),
    [
        (0, "0", "0 bytes"),
        (512, "512", "512 bytes"),
        (4096, "4k", "4 KiB"),
        (4097, "4097", "4 KiB"),
        (256 << 20, "256m", "256 MiB"),
        (3 * GIB // 2, "1536m", "1.5 GiB"),
        (1 << 60, "1024p", "1024 PiB"),
    ],
)
def test_sizes_are_written(size: int, compact: str, human: str) -> None:
    assert format_size(size) == compact
    assert human_size(size) == human


@given(
    st.lists(st.integers(1, 1 << 20), min_size=1, max_size=6, unique=True).flatmap(
        lambda sizes: st.tuples(st.just(sizes), st.lists(st.floats(0.01, 1), min_size=len(sizes), max_size=len(sizes)))
    )
)
def test_mixes_round_trip(mix: tuple[list[int], list[float]]) -> None:
    sizes, weights = mix
    blocks = tuple(
        BlockShare(size, min(100.0, 100 * weight / sum(weights))) for size, weight in zip(sizes, weights, strict=True)
    )
    assert parse_blocks(format_blocks(blocks)) == blocks


@given(st.floats(0, 1e15, allow_nan=False))
def test_durations_and_numbers_round_trip(value: float) -> None:
    assert parse_duration(format_duration(value)) == value
    assert float(format_number(value)) == value


def test_numbers_have_no_exponent() -> None:
    assert [*map(format_number, (0.5, 2000.0, 1_234_567.0, 1e-7))] == ["0.5", "2000", "1234567", "0.0000001"]
    assert format_number(float("inf")) == "inf"


def test_durations_are_written_short() -> None:
    assert [format_duration(value) for value in (0.5, 1, 30, 90, 300, 5400, 7200, 86400)] == [
        "0.5s",
        "1s",
        "30s",
        "90s",
        "5m",
        "90m",
        "2h",
        "1d",
    ]


def test_rounding_up() -> None:
    assert [round_up(size, 4096) for size in (0, 1, 4096, 4097)] == [0, 4096, 4096, 8192]
