"""Figures in narrow columns: never wider than asked, never out of order, never zero that is not."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.field import Unit
from tui.text.format import format_integer, format_quantity

_DECIMAL = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_BINARY = {suffix.upper(): 1024.0**power for power, suffix in enumerate("kMGTPE", 1)}
_DURATION = {"s": 1e3, "h": 3.6e6, "d": 8.64e7}
_LADDERS = {
    Unit.BYTES: _BINARY,
    Unit.BYTES_PER_SECOND: _BINARY,
    Unit.MILLISECONDS: _DURATION,
}
units = st.sampled_from(list(Unit))
figures = st.floats(min_value=0, allow_nan=False, allow_infinity=False)


def _meaning(text: str, unit: Unit) -> float:
    """Read a figure back, "<.01" as a little below .01."""
    below = text.startswith("<")
    text = text.removeprefix("<")
    factor = _LADDERS.get(unit, _DECIMAL).get(text[-1], 1.0)
    number = float(text if factor == 1.0 else text[:-1]) * factor
    return number * 0.999 if below else number


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (math.nan, Unit.PER_SECOND, "-"),
        (0.0, Unit.PER_SECOND, "0"),
        (12_345.0, Unit.PER_SECOND, "12.3k"),
        (1_050_000.0, Unit.PER_SECOND, "1.05M"),
        (999.7, Unit.PER_SECOND, "1.00k"),
        (0.004, Unit.PER_SECOND, "<.01"),
        (12.3 * 2**20, Unit.BYTES_PER_SECOND, "12.3M"),
        (1023.0, Unit.BYTES, "1023"),
        (4096.0, Unit.BYTES, "4.00K"),
        (0.042, Unit.MILLISECONDS, "0.042"),
        (1.23, Unit.MILLISECONDS, "1.23"),
        (123.0, Unit.MILLISECONDS, "123"),
        (1234.0, Unit.MILLISECONDS, "1234"),
        (12_345.0, Unit.MILLISECONDS, "12.3s"),
        (0.0002, Unit.MILLISECONDS, "<.001"),
        (98.25, Unit.PERCENT, "98.2"),
        (100.0, Unit.PERCENT, "100"),
        (12_345.0, Unit.COUNT, "12345"),
        (1.5, Unit.COUNT, "1.50"),
        (math.inf, Unit.COUNT, "#####"),
    ],
)
def test_reads_as_expected_in_five_cells(value: float, unit: Unit, text: str) -> None:
    assert format_quantity(value, unit, 5) == text


@given(figures | st.just(math.nan) | st.just(math.inf), units, st.integers(1, 12))
def test_never_wider_than_asked_and_never_scientific(value: float, unit: Unit, width: int) -> None:
    text = format_quantity(value, unit, width)
    assert 0 < len(text) <= width
    assert "e" not in text


@given(figures, figures, units, st.integers(4, 10))
def test_larger_values_never_read_smaller(one: float, other: float, unit: Unit, width: int) -> None:
    small, large = (format_quantity(value, unit, width) for value in sorted((one, other)))
    if not large.startswith("#"):
        assert _meaning(small, unit) <= _meaning(large, unit) * (1 + 1e-12)


@given(st.floats(min_value=1e-3, max_value=1e15), units)
def test_reads_back_within_half_a_percent(value: float, unit: Unit) -> None:
    text = format_quantity(value, unit, 6)
    three_digits = value >= (10 if unit is Unit.PERCENT else 1)
    if three_digits and not text.startswith("#"):
        assert _meaning(text, unit) == pytest.approx(value, rel=0.0051)


@given(st.floats(min_value=0, exclude_min=True, allow_infinity=False), units, st.integers(1, 8))
def test_what_is_not_zero_never_reads_zero(value: float, unit: Unit, width: int) -> None:
    text = format_quantity(value, unit, width)
    assert any(char in "123456789#" for char in text)


@given(st.floats() | st.integers(0, 2**40).map(float), st.integers(1, 10))
def test_integers_are_whole_or_not_shown(value: float, width: int) -> None:
    text = format_integer(value, width)
    assert len(text) <= width
    assert text in ("-", "#" * width) or int(text) == round(value)
