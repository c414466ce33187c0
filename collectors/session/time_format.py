"""Wall-clock times of samples as text; a damaged recording may contain times out of range."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta, tzinfo

from engine.errors import UsageError

_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?", re.ASCII)
_OFFSET = re.compile(r"\+(?=\d)(?:(\d{1,12})h)?(?:(\d{1,12})m)?(?:(\d{1,12}(?:\.\d{1,12})?)s?)?", re.ASCII)
_EPOCH = re.compile(r"\d{9,11}(?:\.\d{1,12})?", re.ASCII)
_FORMATS = "write 14:30, 14:30:05, 2025-11-21T14:30:05, seconds since 1970, or +90s after the start"


def parse_when(text: str, start_ns: int, end_ns: int, zone: tzinfo | None = None) -> int:
    """Parse a time within or near a recording; returns wall time in nanoseconds.

    A time of day is its first occurrence in a recording that passes midnight. Times without a zone are in `zone`, local
    time if None.

    Raises:
        UsageError: the text is no valid time.
    """
    text = text.strip()
    try:
        if match := _OFFSET.fullmatch(text):
            hours, minutes, seconds = (float(part or 0) for part in match.groups())
            return start_ns + round((hours * 3600 + minutes * 60 + seconds) * 1e9)
        if _EPOCH.fullmatch(text):
            return round(float(text) * 1e3) * 10**6
        if match := _CLOCK.fullmatch(text):
            hour, minute, second = (int(part or 0) for part in match.groups())
            return _time_of_day(start_ns, end_ns, zone, time(hour, minute, second))
        moment = datetime.fromisoformat(text)
        return _to_ns(moment if moment.tzinfo else _in_zone(moment, zone))
    except (ValueError, OverflowError, OSError):
        raise UsageError(f"time {text!r}: not a moment; {_FORMATS}") from None


def _time_of_day(start_ns: int, end_ns: int, zone: tzinfo | None, time_of_day: time) -> int:
    start = datetime.fromtimestamp(start_ns // 10**9, UTC).astimezone(zone)
    first = datetime.combine(start.date(), time_of_day)
    today, tomorrow = (_to_ns(_in_zone(first + timedelta(days=day), zone)) for day in (0, 1))
    return tomorrow if today < start_ns and tomorrow <= end_ns else today


def _in_zone(moment: datetime, zone: tzinfo | None) -> datetime:
    return moment.replace(tzinfo=zone) if zone is not None else moment.astimezone()


def _to_ns(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000


def iso_time(time_ns: int) -> str | None:
    """ISO 8601 in UTC with milliseconds, None for a time out of range."""
    moment = _moment(time_ns)
    return None if moment is None else moment.isoformat(timespec="milliseconds")


def clock_text(time_ns: int) -> str:
    """Local time of day as sar prints it, 8 characters."""
    moment = _moment(time_ns)
    try:
        return "--:--:--" if moment is None else moment.astimezone().strftime("%H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return "--:--:--"


def _moment(time_ns: int) -> datetime | None:
    try:
        return datetime.fromtimestamp(time_ns / 1e9, UTC)
    except (OverflowError, ValueError, OSError):
        return None
