"""Little's law: I/Os in flight = throughput x latency (Little 1961, A proof for the queuing formula L = lambda W)."""

from __future__ import annotations

LITTLE_HOLDS = 0.05
"""Largest deviation at which figures fit each other."""


def little_deviation(in_flight: float, iops: float, latency_ns: float) -> float | None:
    """Relative deviation of the I/Os in flight from throughput x latency; None without latency.

    Above 0, more are in flight than the latencies explain: some have outlasted the measurement.
    """
    explained = iops * latency_ns / 1e9
    return in_flight / explained - 1 if explained > 0 else None
