"""Interfaces of the programs on NFS calls, the block throttle and frozen filesystems.

This process runs them, or the probe helper those on NFS calls and the throttle.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

NFS_PLACES = 2048
"""RPC client, transport and operation that can be told apart; those of unmounted ones stay until the program ends."""
NO_TRANSPORT = 0xFFFF_FFFF
"""Number of the transport where the kernel does not say (Linux 6.1)."""

NfsCalls = tuple[NDArray[np.uint64], list[str], NDArray[np.uint64]]
"""What ended since the last reading: rows of client, transport, version, calls, sums in queue, RTT and execute and the
largest of each in microseconds; their operations; cells of row, series, bucket, count."""
CALL_COLUMNS, CALL_CELL_COLUMNS = 10, 4
NfsSlowCalls = tuple[NDArray[np.uint64], list[str], list[str]]
"""The slowest of them: rows as SLOW_CALL_COLUMNS says, their operations, and the names of the commands."""
SLOW_CALL_COLUMNS = (
    "done_ns",
    "client",
    "transport",
    "version",
    "queue_us",
    "rtt_us",
    "execute_us",
    "xid",
    "process",
)
"""XID 0: the kernel does not say it; process 0: a worker of the kernel ended the call."""


def no_slow_calls() -> NfsSlowCalls:
    """Return none."""
    return np.zeros((0, len(SLOW_CALL_COLUMNS)), np.uint64), [], []


class NfsProgram(Protocol):
    """Program on the calls of NFS clients; implemented by engine._native.NfsTracer."""

    def read(self) -> NfsCalls:
        """Return what ended since the last call.

        Raises:
            OSError: the program is gone.
        """

    def slowest(self) -> NfsSlowCalls:
        """List the slowest calls of the interval that `read` ended, the slowest first."""

    def losses(self) -> tuple[int, int]:
        """Count calls beyond the places, and those that the kernel skipped the program for."""

    def close(self) -> None:
        """Detach."""


PLACES = 8192
"""Pairs of group and device with counters of their own; those of removed groups stay until the programs start again."""

Waits = tuple[NDArray[np.uint64], NDArray[np.uint64]]
"""Rows of cgroup, major, minor, I/Os and nanoseconds since the start; cells of row, bucket, count of the interval."""
WAIT_COLUMNS, CELL_COLUMNS = 5, 3


class ThrottleProgram(Protocol):
    """Programs on the block throttle; implemented by engine._native.ThrottleTracer."""

    def read(self) -> Waits:
        """Return all waits since the start, and the histograms since the last call.

        Raises:
            OSError: the programs are gone.
        """

    def losses(self) -> tuple[int, int]:
        """Count I/Os of groups beyond PLACES, and I/Os held beyond the room for them."""

    def close(self) -> None:
        """Detach."""


Freeze = tuple[str, int, int, int, int]
"""Name, major and minor of the device, begin and end in nanoseconds of CLOCK_MONOTONIC; the end is 0 while it lasts."""


class FreezeProgram(Protocol):
    """Programs on freeze and thaw; implemented by engine._native.FreezeTracer."""

    def read(self) -> list[Freeze]:
        """Return the latest freezes since the programs were attached."""

    def close(self) -> None:
        """Detach."""
