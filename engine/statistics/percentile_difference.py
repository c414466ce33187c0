"""Difference of a percentile of two correlated series of histograms, by a bootstrap over blocks of time."""

from __future__ import annotations

import math
import statistics

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from engine.statistics.batch_means import BATCHES, CORRELATED, FEWER_BATCHES, neighbours, percentile_ranks
from engine.statistics.difference import DifferenceInterval
from engine.statistics.student_t import t_quantile

_REPLICATES = 1000
_SEED = 20
"""Seed of the resampling: the same recordings give the same intervals."""


class HistogramBlocks(Struct, frozen=True, eq=False):
    """Histograms of consecutive blocks of time on common buckets, ascending.

    `low` and `width` have shape (buckets,), `counts` (blocks, buckets).
    """

    low: NDArray[np.float64]
    width: NDArray[np.float64]
    counts: NDArray[np.float64]

    @property
    def ios(self) -> int:
        """Values counted."""
        return int(self.counts.sum())

    def joined(self, blocks: int) -> HistogramBlocks:
        """Join consecutive blocks into at most so many."""
        if len(self.counts) <= blocks:
            return self
        starts = np.arange(blocks) * len(self.counts) // blocks
        return HistogramBlocks(self.low, self.width, np.add.reduceat(self.counts, starts, axis=0))

    def percentile(self, percent: float) -> float:
        """Percentile of all blocks together, interpolated within its bucket; NaN without values."""
        values, _ = self.percentiles(self.counts.sum(axis=0)[None, :], percent)
        return float(values[0])

    def percentiles(
        self, counts: NDArray[np.float64], percent: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Percentile of each row of counts, and the width of the bucket that holds it."""
        if not len(self.low):
            nothing = np.full(len(counts), np.nan)
            return nothing, nothing
        return self._percentiles(np.cumsum(counts, axis=1), percent)

    def drawn_percentiles(self, times: NDArray[np.int64], percent: float) -> NDArray[np.float64]:
        """Percentile of all blocks together, each taken so many times; `times` has shape (draws, blocks).

        However blocks are mixed, their percentile is between those of single blocks: no other bucket is looked at.
        """
        if not len(self.low):
            return np.full(len(times), np.nan)
        below = np.cumsum(self.counts, axis=1)
        at = _bucket(below, below[:, -1] * percent / 100)
        # One bucket more on either side: for the values before the first, and for a rank that is rounded.
        first, last = max(int(at.min()) - 1, 0), min(int(at.max()) + 2, len(self.low))
        part = HistogramBlocks(self.low[first:last], self.width[first:last], self.counts[:, first:last])
        return part._percentiles(times @ below[:, first:last], percent, times @ below[:, -1])[0]

    def _percentiles(
        self, below: NDArray[np.float64], percent: float, ios: NDArray[np.float64] | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Percentiles of rows of values up to the end of each bucket, and widths of their buckets."""
        rank = (below[:, -1] if ios is None else ios) * percent / 100
        at = _bucket(below, rank)
        row = np.arange(len(below))
        before = np.where(at > 0, below[row, at - 1], 0.0)
        inside = below[row, at] - before
        share = np.divide(rank - before, inside, out=np.full(len(below), np.nan), where=inside > 0)
        return self.low[at] + share * self.width[at], self.width[at]


def _bucket(below: NDArray[np.float64], rank: NDArray[np.float64]) -> NDArray[np.intp]:
    """Find the bucket of a rank in each row of values up to the end of each bucket."""
    return np.asarray(np.minimum((below < rank[:, None] - 1e-9).sum(axis=1), below.shape[1] - 1), np.intp)


def values_for(percent: float) -> int:
    """How many values a percentile needs so that its interval is known from them: 10 beyond it."""
    share = percent / 100
    return math.ceil(10 / min(share, 1 - share) - 1e-6)


def percentile_difference(
    a: HistogramBlocks, b: HistogramBlocks, percent: float, confidence: float
) -> DifferenceInterval | None:
    """Interval of the percentile of b minus that of a; None with too few values or fewer than 20 blocks of either.

    Whole blocks are drawn with replacement, which keeps what values of one moment share (Kuensch 1989). Ends are taken
    further out by as much as Student's t is wider than the normal distribution for so few blocks (Hesterberg, What
    Teachers Should Know About the Bootstrap, 2015, expanded percentile interval). The unknown place of a value in its
    bucket is added as a rectangular error (JCGM 100:2008, 4.3.7).
    """
    if any(percentile_ranks(side.ios, percent) is None or len(side.counts) < BATCHES for side in (a, b)):
        return None
    a, b = _apart(a, percent), _apart(b, percent)
    difference = b.percentile(percent) - a.percentile(percent)
    random = np.random.default_rng(_SEED)
    drawn = _drawn(b, percent, random) - _drawn(a, percent, random)
    share = _expanded(1 - confidence, min(len(a.counts), len(b.counts)))
    low, high = np.nanquantile(drawn, (share, 1 - share))
    rounding = statistics.NormalDist().inv_cdf((1 + confidence) / 2) * math.hypot(
        _rounding(a, percent), _rounding(b, percent)
    )
    low = difference - math.hypot(max(difference - float(low), 0.0), rounding)
    high = difference + math.hypot(max(float(high) - difference, 0.0), rounding)
    return DifferenceInterval(difference, low, high)


def _apart(side: HistogramBlocks, percent: float) -> HistogramBlocks:
    """Join blocks until their percentiles hardly depend on each other."""
    joined = side.joined(BATCHES)
    values, _ = joined.percentiles(joined.counts, percent)
    return joined.joined(FEWER_BATCHES) if neighbours(values[np.isfinite(values)]) > CORRELATED else joined


def _drawn(side: HistogramBlocks, percent: float, random: np.random.Generator) -> NDArray[np.float64]:
    blocks = len(side.counts)
    times = random.multinomial(blocks, np.full(blocks, 1 / blocks), _REPLICATES)
    return side.drawn_percentiles(times, percent)


def _expanded(error: float, blocks: int) -> float:
    """Share of the replicates beyond one end."""
    quantile = t_quantile(1 - error, blocks - 1) * math.sqrt(blocks / (blocks - 1))
    return statistics.NormalDist().cdf(-quantile)


def _rounding(side: HistogramBlocks, percent: float) -> float:
    """Return the standard error of a percentile whose place in its bucket is not known."""
    _, width = side.percentiles(side.counts.sum(axis=0)[None, :], percent)
    return float(width[0]) / math.sqrt(12)
