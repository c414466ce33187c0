"""The least rate at which a load may go on, as --rate-min names it: 500iops, 10m, 10m:500ms."""

from __future__ import annotations

import math

from msgspec import Struct

from engine.errors import UsageError
from engine.job.sizes import format_duration, format_number, format_size, parse_duration, parse_size
from engine.text import decimal_number

_IOPS = "iops"
CYCLE_S = 1.0
LEAST_CYCLE_S = 0.1
"""The load is polled 20 times a second."""


class RateFloor(Struct, frozen=True):
    """A rate over all targets, reads and writes together; a load that falls below it is ended as failed."""

    per_s: float
    """I/Os or bytes per second; bytes are whole."""
    in_bytes: bool
    cycle_s: float = CYCLE_S
    """Over which time the rate is taken, again and again."""

    @property
    def text(self) -> str:
        """As it is typed."""
        rate = format_size(round(self.per_s)) if self.in_bytes else f"{format_number(self.per_s)}{_IOPS}"
        return rate if self.cycle_s == CYCLE_S else f"{rate}:{format_duration(self.cycle_s)}"

    def words(self, per_s: float) -> str:
        """Write a rate in its unit."""
        return f"{format_size(round(per_s))}/s" if self.in_bytes else f"{per_s:,.0f} IOPS"


def parse_rate_floor(text: str) -> RateFloor:
    """Read `500iops`, `10m` bytes, or either with the time over which it is taken: `10m:500ms`.

    Raises:
        UsageError: it is neither.
    """
    rate, colon, cycle = text.strip().lower().partition(":")
    cycle_s = parse_duration(cycle) if colon else CYCLE_S
    if not rate.endswith(_IOPS):
        return RateFloor(float(parse_size(rate)), in_bytes=True, cycle_s=cycle_s)
    iops = decimal_number(rate.removesuffix(_IOPS).strip())
    if iops is None or not 0 < iops < math.inf:
        raise UsageError(f"{text!r} is no rate: write it like 500iops, or 10m for bytes per second")
    return RateFloor(iops, in_bytes=False, cycle_s=cycle_s)
