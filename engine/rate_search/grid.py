"""The discrete rates of a search: from the maximum of the load downwards, each lower by the goal width."""

from __future__ import annotations

import functools
import math

from msgspec import Struct

LOWEST_SHARE = 1 / 256
"""Share of the maximum, where nothing else is asked for: what exceeds a limit there does so at any rate."""


class RateGrid(Struct, frozen=True):
    """Rates by index: 0 is the highest, each further one lower by a step. All limits search the same rates."""

    highest: float
    lowest: float
    width: float

    @property
    def last(self) -> int:
        """Index of the lowest rate."""
        return _last(self.highest, self.lowest, self.width)

    def rate(self, index: int) -> float:
        """Rate at an index, to four digits."""
        return _rate(self.highest, self.lowest, self.width, index)

    def nearest(self, rate: float) -> int:
        """Index of a rate of the grid, or of the one nearest to a rate."""
        return _nearest(self.highest, self.lowest, self.width, rate)

    def ladder(self) -> tuple[int, ...]:
        """Few rates over the whole range, ascending: one trial of each shows the curve and where to search."""
        shares = (0.0, 1 / 16, 1 / 4, 1 / 2, 0.7, 0.85, 1.0)
        indices = {self.nearest(max(self.highest * share, self.lowest)) for share in shares}
        return tuple(sorted(indices, reverse=True))


def rounded(rate: float) -> float:
    """Write a rate with four significant digits, as people read it."""
    return float(f"{rate:.4g}")


# Cached as each step of a search asks for the indices of all rates measured so far, for each limit and phase.


@functools.lru_cache(maxsize=64)
def _last(highest: float, lowest: float, width: float) -> int:
    if lowest >= highest:
        return 0
    return max(math.ceil(math.log(highest / lowest) / math.log1p(width) - 1e-9), 1)


@functools.lru_cache(maxsize=1024)
def _rate(highest: float, lowest: float, width: float, index: int) -> float:
    last = _last(highest, lowest, width)
    return rounded(lowest) if index == last and last else rounded(highest * (1 + width) ** -index)


@functools.lru_cache(maxsize=1024)
def _nearest(highest: float, lowest: float, width: float, rate: float) -> int:
    last = _last(highest, lowest, width)
    if last and rate <= _rate(highest, lowest, width, last) * (1 + 1e-9):
        return last
    index = round(math.log(highest / max(rate, 1e-9)) / math.log1p(width))
    return min(max(index, 0), last)
