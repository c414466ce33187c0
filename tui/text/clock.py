"""Times as text."""

from __future__ import annotations

from datetime import datetime

from collectors.session.time_format import clock_text

SECOND_NS = 1_000_000_000


def day_and_clock(time_ns: int) -> str:
    """Date and local time of day; a damaged recording may hold times that no calendar knows."""
    try:
        return datetime.fromtimestamp(time_ns // SECOND_NS).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return "----------" + " " + clock_text(time_ns)


def precise_clock(time_ns: int) -> str:
    """Local time of day with milliseconds, 12 characters."""
    return f"{clock_text(time_ns)}.{time_ns // 1_000_000 % 1000:03}"


def span_text(seconds: float) -> str:
    """Format a duration: 0:07, 12:30, 1:02:03."""
    whole = max(0, int(seconds))
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
