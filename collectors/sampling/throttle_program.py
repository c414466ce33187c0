"""Interface of the programs on the kernel's block throttle, run by this process or by the probe helper."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

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
