"""What a load did between two readings of its counters."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DirectionDelta:
    """I/Os of one direction that completed in an interval."""

    ios: int
    bytes: int
    latency_ns: int
    """Sum of their latencies."""


@dataclass(frozen=True, slots=True)
class LoadInterval:
    """One interval inside an epoch."""

    epoch: int
    end_s: float
    """From the first reading of this load."""
    length_s: float
    read: DirectionDelta
    write: DirectionDelta
    user_s: float
    """CPU time of this process in user mode, of all its threads (getrusage(2))."""
    system_s: float
    """The same in the kernel."""
