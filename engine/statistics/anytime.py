"""Difference of two running series, and of their percentiles, with an interval that is valid after every value."""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from engine.statistics.batch_means import BATCHES, percentile_ranks
from engine.statistics.difference import DifferenceInterval, inflation, inflations
from engine.statistics.percentile_difference import HistogramBlocks

_LEAST_BATCHES = 10
"""The sequence is asymptotic: with fewer batches their spread is hardly known."""
TIGHTEST_BATCHES = 30
"""Number of batches at which the interval is as short as such a sequence can be: five minutes of seconds."""


class _Side(Struct):
    """Batch means of one series."""

    length: int
    means: list[float] = field(default_factory=list)
    _total: float = 0.0
    _weight: float = 0.0
    _values: int = 0

    def add(self, value: float, weight: float) -> None:
        self._total += value * weight
        self._weight += weight
        self._values += 1
        if self._values == self.length:
            self.means.append(self._total / self._weight)
            self._total, self._weight, self._values = 0.0, 0.0, 0


class AnytimeDifference:
    """Confidence sequence of the difference of two means: right at all times at once with the stated confidence.

    A test that is repeated every second finds a difference sooner or later where there is none; this does not, however
    long one watches. Fed one value per interval; batches of `length` of them (`length_b` of the second series), whose
    means hardly depend on each other, are what it counts.

    The asymptotic confidence sequence of Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, Time-uniform central limit
    theory and asymptotic confidence sequences (Annals of Statistics 52, 2024), theorem 2.2, for two independent means:
    the product of their normal mixtures stays below 1 / alpha for ever with probability 1 - alpha (Ville), so that
    after n_a and n_b batch means of standard deviation s_a and s_b both means lie in an ellipse, and their difference
    within sqrt(sum 2 s^2 (n r^2 + 1) / (n r)^2 (ln(1 / alpha) + sum ln(n r^2 + 1) / 2)). For one mean that is the
    formula of the paper. s^2 includes what neighbouring batches share.
    """

    def __init__(self, confidence: float = 0.95, length: int = 10, length_b: int | None = None) -> None:
        length_b = length if length_b is None else length_b
        if not 0 < confidence < 1 or min(length, length_b) < 1:
            lengths = f"{length} and {length_b}"
            raise ValueError(f"confidence {confidence}, batches of {lengths}: between 0 and 1, and at least 1")
        self._alpha = 1 - confidence
        self._a, self._b = _Side(length), _Side(length_b)
        self._counted = 0
        self._interval: DifferenceInterval | None = None

    def add_a(self, value: float, weight: float = 1.0) -> None:
        """Add the figure of an interval of the first series; one without a value or a weight is left out."""
        _add(self._a, value, weight)

    def add_b(self, value: float, weight: float = 1.0) -> None:
        """Add the figure of an interval of the second series, likewise."""
        _add(self._b, value, weight)

    @property
    def means(self) -> tuple[float, float] | None:
        """Both means, over whole batches; None without an interval."""
        if self.values_missing:
            return None
        return float(np.mean(self._a.means)), float(np.mean(self._b.means))

    @property
    def values_missing(self) -> int:
        """About how many values the shorter series lacks for an interval; 0 if there is one."""
        shorter = min(self._a, self._b, key=lambda side: len(side.means))
        return max(_LEAST_BATCHES - len(shorter.means), 0) * shorter.length

    @property
    def interval(self) -> DifferenceInterval | None:
        """Interval of the second mean minus the first, now; None with fewer than 10 batches of either."""
        counted = len(self._a.means) + len(self._b.means)
        if counted != self._counted:
            self._counted, self._interval = counted, self._current()
        return self._interval

    def _current(self) -> DifferenceInterval | None:
        means = self.means
        if means is None:
            return None
        sides = [np.asarray(side.means, np.float64) for side in (self._a, self._b)]
        mixture = mixture_variance(self._alpha, TIGHTEST_BATCHES)
        spread = sum(_spread(batches, mixture) for batches in sides)
        bound = -math.log(self._alpha) + sum(math.log(len(batches) * mixture + 1) for batches in sides) / 2
        half_width = math.sqrt(spread * bound)
        difference = means[1] - means[0]
        return DifferenceInterval(difference, difference - half_width, difference + half_width)


def _spread(means: NDArray[np.float64], mixture: float) -> float:
    """Squared half-width that one side adds, for a bound of 1."""
    variance, scale = float(means.var(ddof=1)) * inflation(means), len(means) * mixture
    return 2 * variance * (scale + 1) / (scale * len(means))


def mixture_variance(alpha: float, batches: int) -> float:
    """Parameter r^2 of the sequence that is shortest after so many batches (same paper, on the choice of rho)."""
    return (-2 * math.log(alpha) + math.log(-2 * math.log(alpha) + 1)) / batches


def _add(side: _Side, value: float, weight: float) -> None:
    if math.isfinite(value) and weight > 0:
        side.add(value, weight)


def anytime_percentile_difference(
    a: HistogramBlocks, b: HistogramBlocks, percent: float, confidence: float
) -> DifferenceInterval | None:
    """Interval of the percentile of b minus that of a, right at all times at once; None with too few values or blocks.

    Each percentile is between its own bounds with half of the error probability (Bonferroni), so their difference is
    between the differences of opposite bounds.
    """
    if any(percentile_ranks(side.ios, percent) is None or len(side.counts) < BATCHES for side in (a, b)):
        return None
    alpha = (1 - confidence) / 2
    (low_a, high_a), (low_b, high_b) = (percentile_bounds(side, percent, alpha) for side in (a, b))
    difference = b.percentile(percent) - a.percentile(percent)
    return DifferenceInterval(difference, low_b - high_a, high_b - low_a)


def percentile_bounds(side: HistogramBlocks, percent: float, alpha: float) -> tuple[float, float]:
    """Bounds between which a percentile lies at all times with probability 1 - alpha.

    The share of values up to a bucket is a mean, so it has a confidence sequence (engine/statistics/anytime.py). The
    percentile is in a bucket of which it is not certain that fewer than `percent` are up to its end, nor that more are
    up to its begin: the inversion of Howard and Ramdas, Sequential estimation of quantiles (Bernoulli 28, 2022), 2, on
    means of blocks instead of single values, as those of one moment resemble each other. The variance is at least the
    binomial one, which the blocks do not show where few values are beyond the percentile.
    """
    blocks = side.joined(TIGHTEST_BATCHES)
    ios = blocks.counts.sum(axis=1)
    below = np.cumsum(blocks.counts, axis=1)
    share = percent / 100
    distances = (below - share * ios[:, None]) / ios.mean()
    middle = distances.mean(axis=0)
    half_width = _half_widths(distances, share * (1 - share) / float(ios.mean()), alpha)
    first = int(np.argmax(middle + half_width >= 0))
    above = np.flatnonzero(middle - half_width > 0)
    last = int(above[0]) if len(above) else len(middle) - 1
    return float(side.low[first]), float(side.low[last] + side.width[last])


def _half_widths(distances: NDArray[np.float64], least_variance: float, alpha: float) -> NDArray[np.float64]:
    count = len(distances)
    mixture = mixture_variance(alpha, TIGHTEST_BATCHES)
    scale = count * mixture
    variance = np.maximum(distances.var(axis=0, ddof=1) * inflations(distances), least_variance)
    bound = -math.log(alpha) + math.log(scale + 1) / 2
    return np.asarray(np.sqrt(2 * variance * (scale + 1) / (scale * count) * bound), np.float64)
