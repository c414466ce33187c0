from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import UsageError
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


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("4096", 4096),
        ("4k", 4096),
        ("4K", 4096),
        ("4kb", 4096),
        ("4KiB", 4096),
        ("64 KiB", 65536),
        ("1m", 1 << 20),
        ("1MiB", 1 << 20),
        ("1.5g", 3 * GIB // 2),
        ("0.5k", 512),
        ("2t", 2 << 40),
        ("1P", 1 << 50),
        (" 8k ", 8192),
        ("512b", 512),
        ("512B", 512),
    ],
)
def test_sizes_count_in_1024(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "k", "4x", "-4k", "4 4k", "1e6", "0x10", "4kk", "1.2.3k", "٤k", "9" * 40, "0.3k", "1.5"]
)
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_size(text)
    assert caught.value.exit_code == 2
    assert "write" in str(caught.value)


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


def test_mixes() -> None:
    assert parse_blocks("8k") == (BlockShare(8192, 100.0),)
    assert parse_blocks("4k:60,16k:40") == (BlockShare(4096, 60.0), BlockShare(16384, 40.0))
    thirds = parse_blocks("4k:33.3, 8k:33.3, 16k:33.3")
    assert thirds[2].percent == pytest.approx(100 / 3)
    assert sum(share.percent for share in thirds) == pytest.approx(100)
    assert parse_blocks("4k:100") == (BlockShare(4096, 100.0),)
    assert parse_blocks("4k:60%,8k:40%")[0].percent == 60


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("4k:60,16k:30", "add up to 90 %"),
        ("4k:50", "add up to 50 %"),
        ("4k:60,16k", "'16k' needs a share"),
        ("4k,16k", "needs a share"),
        ("4k:nan,8k:50", "needs a share"),
        ("4k:inf", "needs a share"),
        ("4k:-10,8k:110", "needs a share"),
        ("4k:0,8k:100", "needs a share"),
        ("4k:60,4k:40", "comes twice"),
        ("", "not a size"),
        (",", "needs a share"),
        ("4k:x", "needs a share"),
        ("q:100", "not a size"),
    ],
)
def test_what_is_no_mix(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_blocks(text)


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


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("500ms", 0.5),
        ("30s", 30),
        ("30", 30),
        ("5m", 300),
        ("2h", 7200),
        ("1d", 86400),
        ("1.5h", 5400),
        ("250us", 0.00025),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "s", "5x", "-5s", "1h30m", "inf", "nan", "1e3s"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(UsageError, match="not a duration"):
        parse_duration(text)


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
