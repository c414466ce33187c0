"""Log-linear latency histograms: bucket numbers, their middles, percentiles, and distributions that add up.

The scale is collectors.model.HistogramScale(unit_ns=1, sub_bits=6), the one the native engine counts in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from engine._native import HISTOGRAM_BUCKETS, HISTOGRAM_SUB_BITS

UNIT_NS = 1
"""Unit of the scale."""
SUB_BITS = HISTOGRAM_SUB_BITS
"""Sub-buckets per octave of the scale, as a power of two."""


def bucket_of(latency_ns: int) -> int:
    """Bucket of one latency; what is beyond the scale falls into the last one."""
    octave = max(latency_ns.bit_length() - 1 - HISTOGRAM_SUB_BITS, 0)
    return min((octave << HISTOGRAM_SUB_BITS) + (latency_ns >> octave), HISTOGRAM_BUCKETS - 1)


def middles_ns(buckets: NDArray[np.integer]) -> NDArray[np.float64]:
    """Middle of each bucket in ns, the value with the least error for what was counted there."""
    octave = np.maximum((buckets >> HISTOGRAM_SUB_BITS).astype(np.int64) - 1, 0)
    mantissa = buckets.astype(np.int64) - (octave << HISTOGRAM_SUB_BITS)
    width = np.ldexp(1.0, octave)
    return np.asarray(mantissa * width + (width - 1) / 2, np.float64)


def merge(buckets: NDArray[np.integer], counts: NDArray[np.uint64]) -> tuple[NDArray[np.uint16], NDArray[np.uint64]]:
    """Add the counts of equal buckets; returns ascending buckets and their exact counts."""
    merged = np.zeros(HISTOGRAM_BUCKETS, np.uint64)
    np.add.at(merged, buckets, counts)
    filled = np.flatnonzero(merged)
    return filled.astype(np.uint16), merged[filled]


def percentile_ns(buckets: NDArray[np.uint16], counts: NDArray[np.uint64], percent: float) -> float | None:
    """Latency that `percent` of the I/Os do not exceed, from merged ascending buckets.

    None with fewer samples than one beyond the percentile: 100 for p99, 1,000 for p99.9.
    """
    total = int(counts.sum())
    beyond = 1 - percent / 100
    if total == 0 or total * beyond < 1 - 1e-9:
        return None
    rank = max(math.ceil(total * percent / 100 - 1e-9), 1)
    position = int(np.searchsorted(np.cumsum(counts), rank))
    return float(middles_ns(buckets[position : position + 1])[0])


class Latencies(Struct, frozen=True, eq=False):
    """Times of some I/Os."""

    sum_ns: int
    least_ns: int | None
    largest_ns: int | None
    buckets: NDArray[np.uint16]
    """Buckets of engine.results.histogram that hold any I/O, ascending."""
    counts: NDArray[np.uint64]

    @property
    def mean_ns(self) -> float | None:
        """Mean time."""
        ios = int(self.counts.sum())
        return self.sum_ns / ios if ios else None

    def percentile_ns(self, percent: float) -> float | None:
        """Time that `percent` of the I/Os do not exceed; None with too few I/Os."""
        value = percentile_ns(self.buckets, self.counts, percent)
        if value is None or self.least_ns is None or self.largest_ns is None:
            return None
        return min(max(value, float(self.least_ns)), float(self.largest_ns))


def combine_latencies(parts: Sequence[Latencies]) -> Latencies:
    """Add up distributions of different I/Os."""
    least = [part.least_ns for part in parts if part.least_ns is not None]
    largest = [part.largest_ns for part in parts if part.largest_ns is not None]
    buckets, counts = merge(
        np.concatenate([part.buckets for part in parts] or [np.zeros(0, np.uint16)]),
        np.concatenate([part.counts for part in parts] or [np.zeros(0, np.uint64)]),
    )
    return Latencies(
        sum(part.sum_ns for part in parts), min(least, default=None), max(largest, default=None), buckets, counts
    )
