"""Whether a series fell over time: monotone regression of batch means (Barlow et al., 1972)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

BATCHES = 20
_FIFTH = BATCHES // 5
LEAST_FALL = 0.1
"""What the rule of steady state still calls level."""
_EXPLAINED = 0.8
"""Share of the variance of the batch means that a falling curve has to explain: of independent noise it is reached in
less than 1 of 1,000 series, of noise that is correlated over twice the length of a batch in 2 of 100."""


class Decline(Struct, frozen=True):
    """A series that fell, by the means of its first and its last fifth."""

    first: float
    last: float

    @property
    def share(self) -> float:
        """Share of the first by which it changed, 0.38 for a fall by 38 %; negative where values rose."""
        return 1 - self.last / self.first


def decline_of(batches: Sequence[float]) -> Decline | None:
    """Judge the means of 20 batches of equal length; None if they did not fall by 10 % or more, and surely so.

    A straight line would miss the cliff of a cache that is full. The non-increasing curve that fits best follows lines,
    cliffs and decays alike; of noise, correlated noise and periodic work it explains little.
    """
    means = np.asarray(batches, np.float64)
    if len(means) != BATCHES or not np.isfinite(means).all():
        return None
    found = Decline(float(means[:_FIFTH].mean()), float(means[-_FIFTH:].mean()))
    if not found.first > 0 or found.share < LEAST_FALL:
        return None
    return found if explained_by_fall(means) >= _EXPLAINED else None


def explained_by_fall(means: NDArray[np.float64]) -> float:
    """Share of the variance that the best non-increasing curve explains, 0 to 1; 0 for a constant series."""
    total = float(((means - means.mean()) ** 2).sum())
    return 1 - float(((means - falling_fit(means)) ** 2).sum()) / total if total else 0.0


def falling_fit(means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Fit the non-increasing curve of least squares, by pooling adjacent violators."""
    pools: list[tuple[float, int]] = []
    for value in means.tolist():
        mean, count = value, 1
        while pools and pools[-1][0] < mean:
            before, others = pools.pop()
            mean, count = (before * others + mean * count) / (others + count), others + count
        pools.append((mean, count))
    return np.repeat([mean for mean, _ in pools], [count for _, count in pools]).astype(np.float64)
