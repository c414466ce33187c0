"""Difference of the means of two correlated series, with a confidence interval (Welch's t on batch means)."""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from engine.statistics.batch_means import BATCHES, CORRELATED, FEWER_BATCHES, neighbours
from engine.statistics.student_t import t_quantile

LEAST_VALUES = BATCHES
"""Fewest values that say something about the noise."""
_MOST_CORRELATION = 0.95


class Estimate(Struct, frozen=True):
    """A mean and how well it is known."""

    mean: float
    squared_error: float
    """Square of its standard error."""
    freedom: int
    """Degrees of freedom of that error."""


class DifferenceInterval(Struct, frozen=True):
    """Difference of two means, the second minus the first, between the ends of its interval."""

    difference: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half of its length."""
        return (self.high - self.low) / 2


def estimate(values: NDArray[np.float64], weights: NDArray[np.float64]) -> Estimate | None:
    """Weighted mean of a series with the error that its batch means show; None with fewer than 20 values of a weight.

    The mean is sum(w x) / sum(w): with the I/Os of each interval as weights the mean latency of an I/O. Batches with
    other weights than the rest count by them, as in the ratio estimator of Cochran, Sampling Techniques (1977), 6.4.
    What batch means of neighbours still share is added as Skart does (Tafazzoli and Wilson, 2011): the variance is
    multiplied by (1 + r) / (1 - r) with their lag-1 correlation r. The same from the values themselves, their r without
    its bias in short series (Kendall 1954), counts if it is more: batches of a few values resemble each other.
    """
    known = np.isfinite(values) & (weights > 0)
    values, weights = values[known], weights[known]
    if len(values) < LEAST_VALUES:
        return None
    means = _batches(values, weights, BATCHES)
    if neighbours(means) > CORRELATED:
        means = _batches(values, weights, FEWER_BATCHES)
    mean = float((values * weights).sum() / weights.sum())
    squared_error = _squared_error(means)
    single = _batches(values, weights, len(values))
    if neighbours(single) > 0:
        squared_error = max(squared_error, _squared_error(single, bias=True))
    return Estimate(mean, squared_error, len(means) - 1)


def inflation(means: NDArray[np.float64], *, bias: bool = False) -> float:
    """Factor of the variance of a mean of values that resemble their neighbours as in an AR(1) series; at least 1."""
    correlation = neighbours(means)
    if bias and correlation > 0:
        correlation += (1 + 4 * correlation) / len(means)
    correlation = min(max(correlation, 0.0), _MOST_CORRELATION)
    return (1 + correlation) / (1 - correlation)


def inflations(series: NDArray[np.float64]) -> NDArray[np.float64]:
    """Likewise of several series, shape (values, series)."""
    centred = series - series.mean(axis=0)
    total = (centred**2).sum(axis=0)
    shared = (centred[1:] * centred[:-1]).sum(axis=0)
    correlation = np.divide(shared, total, out=np.zeros_like(total), where=total > 0).clip(0.0, _MOST_CORRELATION)
    return np.asarray((1 + correlation) / (1 - correlation), np.float64)


def _squared_error(means: NDArray[np.float64], *, bias: bool = False) -> float:
    return inflation(means, bias=bias) * float(means.var(ddof=1)) / len(means)


def welch_interval(a: Estimate, b: Estimate, confidence: float) -> DifferenceInterval:
    """Interval of b - a for means of unequal variance (Welch 1947, degrees of freedom by Satterthwaite 1946)."""
    difference, variance = b.mean - a.mean, a.squared_error + b.squared_error
    if variance == 0:
        return DifferenceInterval(difference, difference, difference)
    squares = a.squared_error**2 / a.freedom + b.squared_error**2 / b.freedom
    freedom = max(int(variance**2 / squares), 1) if squares else min(a.freedom, b.freedom)
    half_width = t_quantile(confidence, freedom) * math.sqrt(variance)
    return DifferenceInterval(difference, difference - half_width, difference + half_width)


def values_needed(interval: DifferenceInterval, margin: float, values: int) -> int | None:
    """How many values a side needs for an interval that decides, if the difference stays as it is.

    Both parts of the interval are as much shorter as the square root of the number of values is larger. None if the
    difference is so near to the margin that 100 times as many would not do.
    """
    difference = interval.difference
    above, below = interval.high - difference, difference - interval.low
    if abs(difference) > margin:
        needs = [(below if difference > 0 else above, abs(difference) - margin)]
    else:
        needs = [(above, margin - difference), (below, margin + difference)]
    if any(distance * 10 <= part for part, distance in needs):
        return None
    return math.ceil(values * max((part / distance) ** 2 for part, distance in needs)) + 1


def _batches(values: NDArray[np.float64], weights: NDArray[np.float64], batches: int) -> NDArray[np.float64]:
    """Means of batches, moved to the overall mean by as much as a batch has less than the usual weight."""
    length = len(values) // batches
    kept = slice(len(values) - length * batches, None)
    weight = weights[kept].reshape(batches, length).sum(axis=1)
    total = (values * weights)[kept].reshape(batches, length).sum(axis=1)
    mean = total.sum() / weight.sum()
    return np.asarray(mean + (total - mean * weight) / weight.mean(), np.float64)
