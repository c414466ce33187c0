"""One load that is best by some measure, with how sure it is and how far to stay away from the cliff."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

_MOST_SET_BACK = 0.10
"""Largest set-back, as iocost-tune caps it."""


class CurveReading(Struct, frozen=True):
    """The curve at one load."""

    load: float
    iops: float
    latency_ns: float
    """Mean, between measured loads."""


class Optimum(Struct, frozen=True):
    """A load to use."""

    at: CurveReading
    """Reading after the set-back."""
    found: float
    """The load before it."""
    low: float
    """Lower end of the 95 % interval of `found`."""
    high: float
    ios: int | None = None
    """I/Os on which the latency rests where a limit is kept: those at the nearest measured load."""

    @property
    def whole_load(self) -> int:
        """Nearest value that the knob can have."""
        return max(round(self.at.load), 1)

    @property
    def is_set_back(self) -> bool:
        """Whether the knob is set lower for it."""
        return self.whole_load < round(self.found)

    @property
    def set_back_share(self) -> float:
        """How much lower the load to use is than the one that was found."""
        return 1 - self.at.load / self.found


def set_back(
    found: float,
    interval: tuple[float, float],
    steepness: float,
    error: float,
    read: Callable[[float], CurveReading],
) -> Optimum:
    """Go back from a cliff by its steepness (both in logarithms) times the error of the fit, 10 % at most."""
    share = min(steepness * error, _MOST_SET_BACK)
    return Optimum(read(found * (1 - share)), found, min(interval[0], found), max(interval[1], found))
