"""Figures as text for narrow columns: three significant digits, limited width, no exponents."""

from __future__ import annotations

import math
from datetime import datetime
from typing import NamedTuple

from collectors.field import Unit
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


MISSING_TEXT = "-"


class _Rung(NamedTuple):
    """One scale of a ladder: values below `limit` (in the field's unit) are shown divided by `divisor`."""

    divisor: float
    suffix: str
    limit: float


def _powers(base: float, suffixes: str, roll_over: float) -> tuple[_Rung, ...]:
    """Build a ladder that goes to the next suffix where three digits, rounded, no longer hold the value."""
    return tuple(_Rung(base**i, suffix.strip(), base**i * roll_over) for i, suffix in enumerate(suffixes))


_DECIMAL = _powers(1000, " kMGTPE", 999.5)
_BINARY = _powers(1024, " KMGTPE", 1023.5)
_DURATION = (
    _Rung(1, "", 9_999.5),
    _Rung(1e3, "s", 9_999.5e3),
    _Rung(3.6e6, "h", 999.5 * 3.6e6),
    _Rung(8.64e7, "d", math.inf),
)
"""Milliseconds keep their unit up to ten seconds; above, the suffix says what the number is in."""

_LADDERS = {
    Unit.PER_SECOND: _DECIMAL,
    Unit.COUNT: _DECIMAL,
    Unit.PERCENT: _DECIMAL,
    Unit.BYTES: _BINARY,
    Unit.BYTES_PER_SECOND: _BINARY,
    Unit.MILLISECONDS: _DURATION,
}
_SMALL_DECIMALS = {Unit.MILLISECONDS: 3, Unit.PERCENT: 1}


def format_quantity(value: float, unit: Unit, width: int) -> str:
    """Format a figure in at most `width` cells, larger values never reading smaller.

    NaN is "-". Counts use SI suffixes, bytes 1024-based ones (K, M, ...), milliseconds turn to s, h and d.
    A value above zero is never shown as zero ("<.01"); one that does not fit is filled with "#", never cut.
    """
    if value != value:  # noqa: PLR0124 - the fastest test for NaN; this runs for every visible cell
        return MISSING_TEXT
    if value < 0:
        positive = format_quantity(-value, unit, width - 1)
        return "-" + positive if not positive.startswith("#") else "#" * width
    if value == 0:
        return "0"
    if unit is Unit.COUNT and 999.5 <= value < 10.0**width - 0.5:
        return f"{value:.0f}"
    for divisor, suffix, limit in _LADDERS[unit]:
        if value < limit:
            text = _fit(value / divisor, suffix, width, 2 if suffix else _SMALL_DECIMALS.get(unit, 2))
            if text:
                return text
    return "#" * width


def _fit(scaled: float, suffix: str, width: int, small_decimals: int) -> str:
    """Find the most precise form of at most three significant digits that fits, or "" if none does."""
    decimals = _decimals(scaled, small_decimals)
    text = f"{scaled:.{decimals}f}{suffix}"
    if len(text) <= width and scaled >= 1:
        return text
    for shown_decimals in range(decimals, -1, -1):
        text = f"{scaled:.{shown_decimals}f}{suffix}"
        if scaled <= 0.5 * 10.0**-shown_decimals:
            text = f"<{10.0**-shown_decimals:.{shown_decimals}f}{suffix}".replace("<0.", "<.")
        if len(text) <= width:
            return text
    return ""


def _decimals(scaled: float, small_decimals: int) -> int:
    """Decimals that give three significant digits after rounding; fewer for units that do not need them."""
    if scaled >= 99.95:
        return 0
    if scaled >= 9.995:
        return 1
    if scaled >= 0.9995:
        return min(2, small_decimals)
    return small_decimals


def format_integer(value: float, width: int) -> str:
    """Format a figure without a fraction (a score, a process id) in at most `width` cells."""
    if value != value:  # noqa: PLR0124 - as above
        return MISSING_TEXT
    text = f"{value:.0f}" if math.isfinite(value) else "#" * width
    return text if len(text) <= width else "#" * width


def format_count(value: float, width: int) -> str:
    """Format a count: in full if it fits, else with a suffix."""
    if 0 <= value < 10.0**width - 0.5:
        return f"{value:.0f}"
    return format_quantity(value, Unit.COUNT, width)
