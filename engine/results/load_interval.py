"""What a load did between two readings of its counters."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DirectionDelta:
    """I/Os of one direction that came back in an interval."""

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
    """CPU time of this process in user mode, whatever of it did the I/O (getrusage(2))."""
    system_s: float
    """The same in the kernel."""
