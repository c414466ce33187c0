"""A distribution of times: sum, extremes and histogram, which add up over epochs and targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.results.histogram import merge, percentile_ns


@dataclass(frozen=True, slots=True, eq=False)
class Latencies:
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
