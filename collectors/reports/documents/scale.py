"""Scales of charts: positions of values, round numbers to label, and how these are written."""

from __future__ import annotations

import math

from msgspec import Struct

from collectors.session.time_format import clock_text
from engine.text import three_digits

_STEPS_S = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)
_MOST_TICKS = 6
"""Ticks of a logarithmic axis."""
_BINARY = ((1 << 40, "Ti"), (1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki"))
_DECIMAL = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


class Scale(Struct, frozen=True):
    """Maps values from `low` to `high` to positions from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def at(self, value: float) -> float:
        """Position of a value; beyond the ends it is that of the end."""
        low, high = self._part(self.low), self._part(self.high)
        share = (self._part(value) - low) / (high - low) if high > low else 0.5
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)

    def _part(self, value: float) -> float:
        return math.log10(max(value, 1e-12)) if self.is_log else value


def round_ticks(high: float, count: int) -> tuple[float, ...]:
    """Choose round values from 0 up to one at or above `high`."""
    if not 0 < high < math.inf:
        return (0.0, 1.0)
    raw = high / count
    magnitude = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * magnitude for factor in (1, 2, 2.5, 5, 10) if factor * magnitude >= raw * (1 - 1e-9))
    return tuple(index * step for index in range(math.ceil(high / step - 1e-9) + 1))


def binary_ticks(high: float, count: int) -> tuple[float, ...]:
    """Choose round values of bytes."""
    if not 0 < high < math.inf:
        return (0.0, 1024.0)
    factor = next((float(factor) for factor, _ in _BINARY if high >= factor), 1.0)
    return tuple(factor * tick for tick in round_ticks(high / factor, count))


def log_ticks(low: float, high: float) -> tuple[float, ...]:
    """Choose powers of ten between two values, with 2 and 5 between them where there is room."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for factors in ((1, 2, 5), (1, 3), (1,)):
        ticks = tuple(factor * 10.0**power for power in range(first, last + 1) for factor in factors)
        inside = tuple(tick for tick in ticks if low * 0.999 <= tick <= high * 1.001)
        if len(inside) < 3:
            return tuple(tick for tick in round_ticks(high, 5) if low <= tick <= high)
        if len(inside) <= _MOST_TICKS:
            return inside
    return inside[:: math.ceil(len(inside) / _MOST_TICKS)]


def time_ticks(span_s: float, start_ns: int, count: int) -> tuple[float, ...]:
    """Choose seconds since the start at which the wall clock shows round times."""
    step = next((step for step in _STEPS_S if span_s / step <= count), math.ceil(span_s / count / 86400) * 86400.0)
    offset_s = -(start_ns / 1e9) % step
    return tuple(offset_s + index * step for index in range(int(max(span_s - offset_s, -1) / step) + 1))


def time_label(seconds: float, start_ns: int) -> str:
    """Local time of day at a moment of a recording."""
    return clock_text(start_ns + round(seconds * 1e9))


def short_number(value: float, unit: str = "") -> str:
    """Write a value in few characters, bytes with binary prefixes."""
    if math.isnan(value):
        return "-"
    prefixes = _BINARY if unit.startswith("B") else _DECIMAL
    for factor, prefix in prefixes:
        if abs(value) >= factor:
            return f"{three_digits(value / factor)}{prefix}"
    return three_digits(value)
