"""Times as people read them, and moments as people type them."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from collectors.moments import clock_text
from engine.errors import UsageError

SECOND_NS = 1_000_000_000
_OFFSET = re.compile(r"([+-])?(?:(\d+)h)?(?:(\d+)m(?:in)?)?(?:(\d+(?:\.\d+)?)s?)?")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d+)?))?")


def day_and_clock(time_ns: int) -> str:
    """Date and local time of day; a damaged recording may hold times that no calendar knows."""
    try:
        return datetime.fromtimestamp(time_ns // SECOND_NS).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return "----------" + " " + clock_text(time_ns)


def span_text(seconds: float) -> str:
    """Write a length of time: 0:07, 12:30, 1:02:03."""
    whole = max(0, int(seconds))
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def parse_moment(text: str, start_ns: int, end_ns: int, position_ns: int) -> int:
    """Read a moment: `14:03`, `2026-05-01 14:03`, `+90s`, `-5m` (from here), `10m` (from the start), `50%`.

    A clock time without a date is looked for between start and end.

    Raises:
        UsageError: it cannot be read as a time.
    """
    text = text.strip()
    if text.endswith("%") and text[:-1].strip().replace(".", "", 1).isdigit():
        return start_ns + round((end_ns - start_ns) * min(float(text[:-1]), 100.0) / 100)
    if clock := _CLOCK.fullmatch(text):
        return _clock_moment(clock, start_ns, end_ns)
    offset = _OFFSET.fullmatch(text.replace(" ", ""))
    if text and offset and any(offset.groups()[1:]):
        return _offset_moment(offset, start_ns, position_ns)
    try:
        return round(datetime.fromisoformat(text).astimezone().timestamp() * SECOND_NS)
    except ValueError:
        hint = "14:03, 14:03:22, 2026-05-01 14:03, 10m (from the start), +90s or -5m (from here), 50%"
        raise UsageError(f"{text!r} is not a time: write {hint}") from None


def _clock_moment(clock: re.Match[str], start_ns: int, end_ns: int) -> int:
    hours, minutes, seconds = int(clock[1]), int(clock[2]), float(clock[3] or 0)
    if hours > 23 or minutes > 59 or seconds >= 60:
        raise UsageError(f"{clock[0]!r} is not a time of day")
    day = datetime.fromtimestamp(start_ns // SECOND_NS).astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
    moment = day + timedelta(hours=hours, minutes=minutes, seconds=seconds)
    while moment.timestamp() * SECOND_NS < start_ns and (moment + timedelta(days=1)).timestamp() * SECOND_NS <= end_ns:
        moment += timedelta(days=1)
    return round(moment.timestamp() * SECOND_NS)


def _offset_moment(offset: re.Match[str], start_ns: int, position_ns: int) -> int:
    sign, hours, minutes, seconds = offset.groups()
    amount = round((int(hours or 0) * 3600 + int(minutes or 0) * 60 + float(seconds or 0)) * SECOND_NS)
    if sign is None:
        return start_ns + amount
    return position_ns + amount if sign == "+" else position_ns - amount
