"""One load that is best by some measure, with how sure it is and how far to stay away from the cliff."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

_MOST_SET_BACK = 0.10
"""As iocost-tune caps it."""


@dataclass(frozen=True, slots=True)
class Optimum:
    """A load to use."""

    load: float
    """After the set-back."""
    found: float
    """Before it."""
    low: float
    """Of the 95 % interval of `found`."""
    high: float
    iops: float
    """Of the fitted curve at `load`."""
    latency_ns: float
    """Mean at `load`, between measured loads."""
    set_back_share: float
    """How much lower `load` is than `found`."""

    @classmethod
    def set_back(
        cls,
        found: float,
        interval: tuple[float, float],
        steepness: float,
        error: float,
        iops_at: Callable[[float], float],
        latency_at: Callable[[float], float],
        *,
        lowest: float,
    ) -> Optimum:
        """Go back from a cliff by its steepness (both in logarithms) times the error of the fit, 10 % at most."""
        share = min(steepness * error, _MOST_SET_BACK)
        load = max(found * (1 - share), lowest)
        return cls(
            load,
            found,
            min(interval[0], found),
            max(interval[1], found),
            iops_at(load),
            latency_at(load),
            1 - load / found,
        )
