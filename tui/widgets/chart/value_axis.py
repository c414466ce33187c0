"""The value axis of a chart: range, ticks and labels."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collectors.field import Unit
from tui.text.format import format_quantity

LABEL_WIDTH = 5
_MANTISSAS = {1.0: (4, 2), 1.5: (3,), 2.0: (4, 2), 3.0: (3,), 4.0: (4, 2), 5.0: (5,), 6.0: (3, 2), 8.0: (4, 2)}
"""Round axis limits, and the number of round parts of each."""
_ROOM = 1.3
"""The axis shrinks only if the values times this still fit, to avoid flicker."""
_ROWS_PER_TICK = 3
_MOST_DECADES = 6


@dataclass(frozen=True, slots=True)
class Axis:
    """A range of values, linear from 0 or logarithmic by decades, with ticks."""

    low: float
    high: float
    log: bool
    ticks: tuple[float, ...]

    def position(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Height of values between 0 at the low end and 1 at the high end, clipped; NaN stays NaN."""
        if self.log:
            floored = np.maximum(values, self.low)
            heights = np.log10(floored / self.low) / math.log10(self.high / self.low)
        else:
            heights = (values - self.low) / (self.high - self.low)
        return np.clip(heights, 0.0, 1.0)


def linear_axis(largest: float, unit: Unit, rows: int, previous: Axis | None = None) -> Axis:
    """Choose an axis from 0 to a round number >= `largest`; percent always ends at 100 or above."""
    if unit is Unit.PERCENT:
        largest = max(largest, 100.0)
    high, parts = _round_up(largest, unit)
    if previous is not None and not previous.log and high < previous.high <= _round_up(largest * _ROOM, unit)[0]:
        high, parts = _round_up(previous.high, unit)
    intervals = next((count for count in parts if rows >= count * _ROWS_PER_TICK), 1)
    return Axis(0.0, high, False, tuple(high * i / intervals for i in range(intervals + 1)))


def log_axis(smallest: float, largest: float, rows: int, previous: Axis | None = None) -> Axis:
    """Choose an axis of whole decades for the positive values from `smallest` to `largest`."""
    top = math.ceil(math.log10(largest) - 1e-9)
    bottom = max(math.floor(math.log10(smallest) + 1e-9), top - _MOST_DECADES)
    if previous is not None and previous.log:
        top = max(top, min(round(math.log10(previous.high)), top + 1))
        bottom = min(bottom, max(round(math.log10(previous.low)), bottom - 1))
    bottom = min(bottom, top - 1)
    step = max(1, math.ceil((top - bottom) * 2 / max(1, rows)))
    return Axis(10.0**bottom, 10.0**top, True, tuple(10.0**power for power in range(bottom, top + 1, step)))


def tick_label(value: float, unit: Unit) -> str:
    """Label of a tick in at most LABEL_WIDTH cells, without trailing zeros."""
    text = format_quantity(value, unit, LABEL_WIDTH)
    number = text.rstrip("kKMGTPEshd")
    if "." not in number or "<" in number:
        return text
    return number.rstrip("0").rstrip(".") + text[len(number) :]


def _round_up(value: float, unit: Unit) -> tuple[float, tuple[int, ...]]:
    """Find the next round number, and its number of round parts."""
    if not 0 < value < math.inf:
        return 1.0, _MANTISSAS[1.0]
    binary = unit in (Unit.BYTES, Unit.BYTES_PER_SECOND)
    scale = 1024.0 ** max(0, math.floor(math.log(value, 1024) + 1e-12)) if binary else 1.0
    scaled = value / scale
    if binary and 800 < scaled <= 1024:
        return 1024 * scale, _MANTISSAS[1.0]
    power = 10.0 ** math.floor(math.log10(scaled) + 1e-12)
    for mantissa, parts in _MANTISSAS.items():
        if scaled <= mantissa * power * (1 + 1e-12):
            return mantissa * power * scale, parts
    return 10.0 * power * scale, _MANTISSAS[1.0]
