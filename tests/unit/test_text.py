"""Names from devices are data: nothing in them reaches the terminal as a command."""

from __future__ import annotations

import math
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from engine.text import safe_text, three_digits, with_prefix


def test_plain_text_is_kept() -> None:
    for plain in ("vda", "Samsung SSD 990", "[red]", "ディスク", "磁盘", ""):
        assert safe_text(plain) == plain


def test_what_could_act_is_shown_instead() -> None:
    assert safe_text("\x1b[31mvda\a") == r"\x1b[31mvda\x07"
    assert safe_text("a\nb\tc\r") == r"a\x0ab\x09c\x0d"
    assert safe_text("\x9b2J") == r"\x9b2J"
    assert safe_text("a\u202eb") == r"a\u202eb"
    assert safe_text("a\u200bb\U000e0041") == r"a\u200bb\U000e0041"
    assert safe_text("line\u2028") == r"line\u2028"
    assert safe_text("a\u00a0b\u3000c") == "a b c"


def test_bytes_that_are_not_utf8_show_as_bytes() -> None:
    assert safe_text(b"sd\xff\x80".decode("utf-8", "surrogateescape")) == r"sd\xff\x80"


@given(st.text(st.characters()))
def test_nothing_but_printable_text_comes_out(text: str) -> None:
    safe = safe_text(text)
    assert safe.isprintable()
    assert not any(unicodedata.category(character).startswith("C") for character in safe)
    safe.encode("utf-8")


def test_three_digits_and_all_before_the_point() -> None:
    values = (0.0, 0.0000123, 0.5, 35.16, 999.4, 999.6, 1000.0, 12345.0, -1234.0)
    assert [*map(three_digits, values)] == [
        "0", "0.0000123", "0.5", "35.2", "999", "1000", "1000", "12345", "-1234",
    ]  # fmt: skip
    assert three_digits(math.nan) == "nan"


def test_prefixes_begin_where_1000_would_be_written() -> None:
    values = (0.5, 999.4, 999.6, 1000.0, 123_456.0, 999_600.0, 1_500_000.0, -2e9, 3e20, math.inf)
    assert ["".join(with_prefix(value)) for value in values] == [
        "0.5", "999", "1k", "1k", "123k", "1M", "1.5M", "-2G", "300000P", "inf",
    ]  # fmt: skip
    assert with_prefix(1023.7, 1024.0) == ("1", "k")
    assert with_prefix(math.nan)[1] == ""


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_a_number_of_three_digits_is_read_back_without_an_exponent(value: float) -> None:
    text = three_digits(value)
    assert "e" not in text.lower()
    assert abs(float(text) - value) <= max(0.5 if abs(value) >= 999.5 else 0.0, 0.005001 * abs(value))
