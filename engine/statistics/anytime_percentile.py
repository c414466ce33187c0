"""Difference of a percentile of two running series of histograms, with an interval that is valid at any time."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from engine.statistics.anytime import TIGHTEST_BATCHES, mixture_variance
from engine.statistics.batch_means import BATCHES, percentile_ranks
from engine.statistics.difference import DifferenceInterval, inflations
from engine.statistics.percentile_difference import HistogramBlocks


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
