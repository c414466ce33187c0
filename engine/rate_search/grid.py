"""The discrete rates of a search: from the maximum of the load downwards, each lower by the goal width."""

from __future__ import annotations

import math
from dataclasses import dataclass

LOWEST_SHARE = 1 / 256
"""Of the maximum, where nothing else is asked for: whatever exceeds a limit there does so at any rate."""


@dataclass(frozen=True, slots=True)
class RateGrid:
    """Rates by index: 0 is the highest, each further one lower by a step. All limits search the same rates."""

    highest: float
    lowest: float
    width: float

    @property
    def last(self) -> int:
        """Index of the lowest rate."""
        if self.lowest >= self.highest:
            return 0
        return max(math.ceil(math.log(self.highest / self.lowest) / math.log1p(self.width) - 1e-9), 1)

    def rate(self, index: int) -> float:
        """Rate at an index, to four digits."""
        if index == self.last and self.last:
            return rounded(self.lowest)
        return rounded(self.highest * (1 + self.width) ** -index)

    def nearest(self, rate: float) -> int:
        """Index of a rate of the grid, or of the one nearest to a rate."""
        if self.last and rate <= self.rate(self.last) * (1 + 1e-9):
            return self.last
        index = round(math.log(self.highest / max(rate, 1e-9)) / math.log1p(self.width))
        return min(max(index, 0), self.last)

    def ladder(self) -> tuple[int, ...]:
        """Few rates over the whole range, ascending: one trial of each shows the curve and where to search."""
        shares = (0.0, 1 / 16, 1 / 4, 1 / 2, 0.7, 0.85, 1.0)
        indices = {self.nearest(max(self.highest * share, self.lowest)) for share in shares}
        return tuple(sorted(indices, reverse=True))


def rounded(rate: float) -> float:
    """Write a rate with four significant digits, as people read it."""
    return float(f"{rate:.4g}")
