"""Shares of I/Os by their latency."""

from __future__ import annotations

from engine.results.histogram import middles_ns
from engine.results.measured import Measured


def share_between(measured: Measured, lower_ns: float, upper_ns: float) -> float | None:
    """Share of the I/Os, in percent, that took longer than one time and no longer than another; None without any."""
    total = int(measured.counts.sum())
    middles = middles_ns(measured.buckets)
    within = measured.counts[(middles > lower_ns) & (middles <= upper_ns)].sum()
    return 100 * int(within) / total if total else None
