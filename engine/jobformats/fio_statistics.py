"""Figures of I/Os in the names and units of fio's JSON (fio(1), JSON OUTPUT)."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.results.histogram import middles_ns
from engine.results.latencies import Latencies
from engine.results.latency_shares import share_between
from engine.results.measured import Measured
from engine.running.load_interval import DirectionGrowth

Figures = dict[str, object]

_PERCENTILES = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99)
_STEPS = (2, 4, 10, 20, 50, 100, 250, 500, 750, 1000)
_UNITS_NS = {"latency_ns": 1, "latency_us": 1_000, "latency_ms": 1_000_000}
_LONGEST = 2000
"""Milliseconds; what is above is one share."""


def direction_figures(
    measured: Measured, duration_s: float, growths: Sequence[tuple[DirectionGrowth, float]]
) -> Figures:
    """Write one direction; `growths` are its intervals with their lengths.

    `lat_ns` are latencies as lunscope counts them, in an open loop from the intended start; `clat_ns` are always from
    submit to reap. Submission is not timed by itself, so there is no `slat_ns`. Percentiles are left out where there
    are too few I/Os for them. As in fio what was never measured is 0 beside `N` or samples of 0.
    """
    bytes_per_s = measured.bytes / duration_s if duration_s else 0.0
    return {
        "io_bytes": measured.bytes,
        "io_kbytes": measured.bytes // 1024,
        "bw_bytes": round(bytes_per_s),
        "bw": round(bytes_per_s / 1024),
        "iops": measured.ios / duration_s if duration_s else 0.0,
        "runtime": round(duration_s * 1000),
        "total_ios": measured.ios,
        "clat_ns": _latencies(measured if measured.service is None else measured.service),
        "lat_ns": _latencies(measured),
        **_spread("bw", [growth.bytes / length_s / 1024 for growth, length_s in growths]),
        **_spread("iops", [growth.ios / length_s for growth, length_s in growths]),
    }


def _latencies(of: Measured | Latencies) -> Figures:
    ios = int(of.counts.sum())
    mean_ns = of.mean_ns or 0.0
    figures: Figures = {
        "min": of.least_ns or 0,
        "max": of.largest_ns or 0,
        "mean": mean_ns,
        "stddev": _deviation_ns(of.buckets, of.counts, mean_ns),
        "N": ios,
    }
    if ios:
        known = ((percent, of.percentile_ns(percent)) for percent in _PERCENTILES)
        figures["percentile"] = {f"{percent:.6f}": round(value) for percent, value in known if value is not None}
    return figures


def _deviation_ns(buckets: NDArray[np.uint16], counts: NDArray[np.uint64], mean_ns: float) -> float:
    """Take the standard deviation from the histogram: its buckets are at most 1.6 % wide."""
    if not len(counts):
        return 0.0
    squares = (middles_ns(buckets) - mean_ns) ** 2
    return math.sqrt(float(np.average(squares, weights=counts.astype(np.float64))))


def _spread(what: str, values: Sequence[float]) -> Figures:
    return {
        f"{what}_min": round(min(values, default=0)),
        f"{what}_max": round(max(values, default=0)),
        f"{what}_mean": statistics.fmean(values) if values else 0.0,
        f"{what}_{'dev' if what == 'bw' else 'stddev'}": statistics.stdev(values) if len(values) > 1 else 0.0,
        f"{what}_samples": len(values),
    }


def latency_shares(measured: Measured) -> Figures:
    """Share of the I/Os in percent by latency: each key is the upper end of its range, in the unit of its table."""
    lower_ns, shares = 0, dict[str, object]()
    for name, unit_ns in _UNITS_NS.items():
        steps = (*_STEPS, _LONGEST) if name == "latency_ms" else _STEPS
        bounds = [lower_ns, *(step * unit_ns for step in steps)]
        table = {str(step): 0.0 for step in steps}
        for step, (lower, upper) in zip(steps, itertools.pairwise(bounds), strict=True):
            table[str(step)] = share_between(measured, lower, upper) or 0.0
        lower_ns = max(bounds)
        shares[name] = table
    last = shares["latency_ms"]
    assert isinstance(last, dict)
    last[f">={_LONGEST}"] = share_between(measured, lower_ns, math.inf) or 0.0
    return shares
