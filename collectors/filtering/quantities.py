"""Figures of a filter with their units: 5ms, 100k, 1.5MB/s, 50%."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import NamedTuple

from collectors.field import Unit

_NUMBER = re.compile(
    r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]{1,3}(?![a-z]))?)(.*)", re.IGNORECASE | re.DOTALL
)
_LETTERS = "kmgtpe"
_TIMES = {
    "ns": 1e-6, "us": 1e-3, "µs": 1e-3, "μs": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4, "min": 6e4, "h": 3.6e6, "d": 8.64e7,
}  # fmt: skip
"""Milliseconds of each unit; µ is the micro sign and the Greek letter."""


class Quantity(NamedTuple):
    """A typed figure in the unit of its field, and half of its last digit."""

    value: float
    half_digit: float


def _scales(base: float, unit: str) -> Mapping[str, float]:
    """Suffixes with k, M, G ..., as the grids show them, with and without the unit."""
    scales = {unit: 1.0}
    for power, letter in enumerate(_LETTERS, start=1):
        scales |= dict.fromkeys((letter, letter + unit, f"{letter}i{unit}"), base**power)
    return scales


_SCALES: Mapping[Unit, Mapping[str, float]] = {
    Unit.MILLISECONDS: _TIMES,
    Unit.PERCENT: {"%": 1.0},
    Unit.COUNT: _scales(1000.0, ""),
    Unit.PER_SECOND: _scales(1000.0, ""),
    Unit.BYTES: _scales(1024.0, "b"),
    Unit.BYTES_PER_SECOND: _scales(1024.0, "b"),
}
_EXAMPLES = {
    Unit.MILLISECONDS: "5, 5ms, 200us or 1s",
    Unit.PERCENT: "50 or 50%",
    Unit.COUNT: "32 or 10k",
    Unit.PER_SECOND: "500 or 10k",
    Unit.BYTES: "4096, 64k or 1.5MB",
    Unit.BYTES_PER_SECOND: "4096, 64k or 1.5MB/s",
}


def example_of(unit: Unit) -> str:
    """Examples of figures in a unit."""
    return _EXAMPLES[unit]


def read_quantity(text: str, unit: Unit) -> Quantity | None:
    """Read a figure for a field of this unit; None if it is none. Suffixes of bytes are 1024-based, as in the grids."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    number, suffix = found.group(1), found.group(2).casefold()
    if unit in {Unit.PER_SECOND, Unit.BYTES_PER_SECOND}:
        suffix = suffix.removesuffix("/s")
    scale = 1.0 if not suffix else _SCALES[unit].get(suffix)
    if scale is None or not math.isfinite(float(number) * scale):
        return None
    value = float(number) * scale
    last = Decimal(number).as_tuple().exponent
    half = 0.5 * 10.0 ** max(last, -300) * scale if value and isinstance(last, int) else 0.0
    return Quantity(value, half)
