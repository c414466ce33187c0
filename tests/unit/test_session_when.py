"""Moments as people write them."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from collectors.session.time_format import parse_when
from engine.errors import UsageError

_ZONE = timezone(timedelta(hours=2))
_START = datetime(2025, 11, 21, 22, 30, 0, 500_000, _ZONE)
_END = datetime(2025, 11, 22, 6, 0, tzinfo=_ZONE)


def _ns(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000


@given(st.text(max_size=30))
def test_any_text_is_a_moment_or_a_usage_error(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert isinstance(parse_when(text, _ns(_START), _ns(_END)), int)
