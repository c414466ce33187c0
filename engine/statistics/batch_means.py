"""Mean of a correlated series with a confidence interval, and when to stop measuring."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from engine.statistics.student_t import t_quantile

BATCHES = 20
FEWER_BATCHES = 10
"""Taken where neighbouring batch means still resemble each other: longer batches depend less on each other."""
CORRELATED = 0.3
_CONFIDENCE = 0.95
_EXCEEDANCES = 100
"""I/Os beyond a percentile that make it worth showing: their number is then known to +-20 % (95 % confidence)."""


class ConfidenceInterval(Struct, frozen=True):
    """A mean with the half-width of its 95 % confidence interval, in the unit of the values."""

    mean: float
    half_width: float

    @property
    def low(self) -> float:
        """Lower end."""
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        """Upper end."""
        return self.mean + self.half_width

    @property
    def relative(self) -> float:
        """Half-width as a share of the mean; infinite for a mean of 0."""
        return self.half_width / abs(self.mean) if self.mean else math.inf


def batch_interval(values: NDArray[np.float64]) -> ConfidenceInterval | None:
    """ConfidenceInterval of the mean of a steady series by batch means (Student t); None with fewer than 20 values.

    The series is cut into 20 batches, so long that their means hardly depend on each other; into 10 where they do.
    """
    if len(values) < BATCHES:
        return None
    means = _means(values, BATCHES)
    if neighbours(means) > CORRELATED:
        means = _means(values, FEWER_BATCHES)
    return interval_of(means)


def interval_of(values: NDArray[np.float64]) -> ConfidenceInterval | None:
    """ConfidenceInterval of the mean of independent values; None with fewer than 2."""
    count = len(values)
    if count < 2:
        return None
    error = float(values.std(ddof=1)) / math.sqrt(count)
    return ConfidenceInterval(float(values.mean()), t_quantile(_CONFIDENCE, count - 1) * error)


def _means(values: NDArray[np.float64], batches: int) -> NDArray[np.float64]:
    length = len(values) // batches
    kept = values[len(values) - length * batches :]
    return np.asarray(kept.reshape(batches, length).mean(axis=1), np.float64)


def neighbours(means: NDArray[np.float64]) -> float:
    """Lag-1 autocorrelation; 0 for a constant series."""
    centred = means - means.mean()
    total = float(centred @ centred)
    return float(centred[1:] @ centred[:-1]) / total if total else 0.0


def enough_ios(percent: float) -> int:
    """How many I/Os a percentile needs so that 100 lie beyond it: 10,000 for p99, 100,000 for p99.9."""
    return math.ceil(_EXCEEDANCES / (1 - percent / 100) - 1e-6)


def percentile_ranks(ios: int, percent: float) -> tuple[float, float] | None:
    """Percentiles between which the true one lies with 95 % confidence; None where too few I/Os lie beyond.

    Order statistics: how many of n I/Os are below a percentile is binomial; its normal approximation holds from about
    10 I/Os on either side.
    """
    share = percent / 100
    if ios * min(share, 1 - share) < 10 - 1e-6:
        return None
    margin = 1.96 * math.sqrt(share * (1 - share) / ios)
    return 100 * (share - margin), 100 * min(share + margin, 1.0)


WANTED_HALF_WIDTH = 0.02


class Stop(StrEnum):
    """Why a measurement may end."""

    GO_ON = "go on"
    PRECISE = "precise"
    NOISY = "noisy"
    """The noise itself has settled: measuring longer shows the same spread."""
    TIME = "time"
    """The longest time is over, or that for the I/Os of the percentile: `Trial.is_noisy` tells what is missing."""


class StopRule(Struct, frozen=True):
    """When a measurement of one point is enough."""

    half_width: float = WANTED_HALF_WIDTH
    """Wanted half-width of the interval, as a share of the mean."""
    least_s: float = 1.0
    most_s: float = 15.0
    least_warm_up_s: float = 1.0
    most_warm_up_s: float = 6.0
    percent: float = 99.0
    """Percentile that is shown."""
    most_for_percentile_s: float = 3.0
    """Longest time to wait for its I/Os alone: on a slow device that is minutes, for a figure no answer depends on."""
    window: int = 16
    """Estimates of the noise that are compared, as of NVBench's stdrel criterion."""
    settled: float = 0.05
    """Relative spread of those estimates under which the noise has settled."""

    def decide(self, interval: ConfidenceInterval | None, ios: int, measured_s: float, noise: Sequence[float]) -> Stop:
        """Say whether to go on; `noise` holds the relative spread of the values as it was estimated over and over."""
        if measured_s >= self.most_s:
            return Stop.TIME
        if measured_s < self.least_s or interval is None:
            return Stop.GO_ON
        is_short = ios < enough_ios(self.percent)
        if is_short and measured_s < self.most_for_percentile_s:
            return Stop.GO_ON
        if interval.relative <= self.half_width:
            return Stop.TIME if is_short else Stop.PRECISE
        return Stop.NOISY if self.noise_settled(noise) else Stop.GO_ON

    def noise_settled(self, noise: Sequence[float]) -> bool:
        """Whether the last estimates of the noise no longer move."""
        if len(noise) < self.window:
            return False
        last = np.asarray(noise[-self.window :], np.float64)
        return bool(np.isfinite(last).all() and last.std() <= self.settled * last.mean())


def relative_spread(values: NDArray[np.float64]) -> float:
    """Give the standard deviation as a share of the mean; infinite where that is 0 or there are fewer than 2 values."""
    mean = float(values.mean()) if len(values) > 1 else 0.0
    return float(values.std(ddof=1)) / abs(mean) if mean else math.inf
