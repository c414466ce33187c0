"""Moments as people write them."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.session.time_format import parse_when
from engine.errors import UsageError

_ZONE = timezone(timedelta(hours=2))
_START = datetime(2025, 11, 21, 22, 30, 0, 500_000, _ZONE)
_END = datetime(2025, 11, 22, 6, 0, tzinfo=_ZONE)


def _ns(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("23:15", datetime(2025, 11, 21, 23, 15, tzinfo=_ZONE)),
        ("02:14:07", datetime(2025, 11, 22, 2, 14, 7, tzinfo=_ZONE)),
        ("22:30:00", datetime(2025, 11, 21, 22, 30, tzinfo=_ZONE)),
        ("2025-11-22T01:00:00", datetime(2025, 11, 22, 1, tzinfo=_ZONE)),
        ("2025-11-22 01:00", datetime(2025, 11, 22, 1, tzinfo=_ZONE)),
        ("2025-11-21T23:00:00Z", datetime(2025, 11, 21, 23, tzinfo=UTC)),
        ("2025-11-21T23:00:00.25+05:30", datetime(2025, 11, 21, 17, 30, 0, 250_000, UTC)),
        ("1763769600", datetime(2025, 11, 22, 0, 0, tzinfo=UTC)),
        ("1763769600.125", datetime(2025, 11, 22, 0, 0, 0, 125_000, UTC)),
        ("+90s", _START + timedelta(seconds=90)),
        ("+90", _START + timedelta(seconds=90)),
        ("+1h30m", _START + timedelta(minutes=90)),
        ("+1m0.5s", _START + timedelta(seconds=60.5)),
    ],
)
def test_moments(text: str, expected: datetime) -> None:
    assert parse_when(text, _ns(_START), _ns(_END), _ZONE) == _ns(expected)


@pytest.mark.parametrize(
    "text", ["", "noon", "25:00", "12:60", "+", "+h", "-5", "12", "1e9", "99999-01-01", "2025-13-01"]
)
def test_what_is_no_moment_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="not a moment"):
        parse_when(text, _ns(_START), _ns(_END), _ZONE)


@given(st.text(max_size=30))
def test_any_text_is_a_moment_or_a_usage_error(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert isinstance(parse_when(text, _ns(_START), _ns(_END)), int)
