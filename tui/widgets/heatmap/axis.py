"""The latency axis of a heat map: logarithmic, between round numbers, with hysteresis."""

from __future__ import annotations

import math

from collectors.latency.heat_map import LatencyRange

_ROUND = (1.0, 2.0, 5.0, 10.0)
_LEAST_RATIO = 10.0
_SLACK = 5.5
"""Factor by which the limits may be too wide before the axis shrinks; about two round numbers."""
_NARROWEST = 1.2
"""Smallest range: below it a row would be finer than any histogram bucket."""
_ROWS_FOR_ALL = 7.0
"""Rows per decade from which on 2 and 5 get labels too."""
_ROWS_FOR_TENS = 2.0


def fitted_range(smallest_ns: float, largest_ns: float, previous: LatencyRange | None) -> LatencyRange:
    """Choose round limits for the latencies; the previous ones are kept while they fit and are not too wide."""
    low, high = _round_down(max(smallest_ns, 1.0)), _round_up(largest_ns)
    high = max(high, low * _LEAST_RATIO)
    if previous is not None and _holds(previous, low, high) and not _is_loose(previous, low, high):
        return previous
    return LatencyRange(low, high)


def zoomed_range(present: LatencyRange, centre_ns: float | None, factor: float) -> LatencyRange:
    """Narrow (factor below 1) or widen a range by its ratio, around a latency or its middle."""
    ratio = max((present.high_ns / present.low_ns) ** factor, _NARROWEST)
    centre = centre_ns or math.sqrt(present.low_ns * present.high_ns)
    low = max(centre / math.sqrt(ratio), 1.0)
    return LatencyRange(low, low * ratio)


def label_values_ns(present: LatencyRange, rows: int) -> list[float]:
    """Latencies to label: decades, with room also 2 and 5, and if no round one is visible both ends."""
    per_ten = rows / math.log10(present.high_ns / present.low_ns)
    mantissas = _ROUND[:3] if per_ten >= _ROWS_FOR_ALL else _ROUND[:1] if per_ten >= _ROWS_FOR_TENS else ()
    first, last = math.floor(math.log10(present.low_ns)), math.ceil(math.log10(present.high_ns))
    values = [mantissa * 10.0**power for power in range(first, last + 1) for mantissa in mantissas]
    inside = [value for value in values if present.low_ns * 0.999 <= value <= present.high_ns * 1.001]
    return inside if len(inside) > 1 else [present.low_ns, present.high_ns]


def round_up_count(count: float) -> float:
    """Round up to 1, 2, 5, 10, ...: the end of a colour scale, so that it seldom changes."""
    return _round_up(count)


def _holds(present: LatencyRange, low: float, high: float) -> bool:
    return present.low_ns <= low * 1.001 and present.high_ns >= high * 0.999


def _is_loose(present: LatencyRange, low: float, high: float) -> bool:
    return present.high_ns > high * _SLACK or present.low_ns < low / _SLACK


def _round_down(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value) + 1e-9)
    return max(mantissa for mantissa in _ROUND if mantissa * power <= value * (1 + 1e-9)) * power


def _round_up(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(max(value, 1.0)) + 1e-9)
    return min(mantissa for mantissa in _ROUND if mantissa * power >= value * (1 - 1e-9)) * power
