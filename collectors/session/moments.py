"""Wall-clock times of samples as text; a damaged recording may hold times that no calendar knows."""

from __future__ import annotations

from datetime import UTC, datetime


def iso_time(time_ns: int) -> str | None:
    """ISO 8601 in UTC with milliseconds, None where there is no such time."""
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
