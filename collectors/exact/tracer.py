"""What counts at the block tracepoints, whoever has attached it: this process or the probe helper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from collectors.model import HistogramScale

SCALE = HistogramScale(unit_ns=64, sub_bits=4)
"""Of the histograms that the programs keep: buckets at most 6.25 % wide."""

SLOW_COLUMNS = (
    "done_ns",
    "row",
    "sector",
    "bytes",
    "operation",
    "tag_wait_ns",
    "queue_ns",
    "service_ns",
    "process",
    "thread",
    "cgroup",
    "latency_ns",
)
"""Of a slow I/O as the programs keep it."""

Cells = tuple[NDArray[np.uint32], NDArray[np.uint8], NDArray[np.uint16], NDArray[np.uint64]]


class Tracer(Protocol):
    """Counters and histograms of all devices that did I/O since they were attached; engine._native.BlockTracer is one.

    All calls come from one thread. They raise OSError when the tracer is gone.
    """

    @property
    def generation(self) -> int:
        """Grows when a row came or now means another device."""

    def names(self) -> list[str]:
        """Kernel names of the rows."""

    def numbers(self) -> NDArray[np.uint32]:
        """Device numbers of the rows, shape (n, 2): major, minor."""

    def read(self) -> NDArray[np.uint64]:
        """Shape (n, columns of TRACE); peaks are those since the last call."""

    def cells(self) -> Cells:
        """Growth of the histograms since the last call: row, place in TRACE_SERIES, bucket, count."""

    def regroup(self, groups: Sequence[Sequence[str]]) -> object:
        """Count busy time of these groups of devices, by kernel name, from now on."""

    def read_groups(self) -> NDArray[np.uint64]:
        """Shape (groups, columns of TRACE_GROUP), in the order of the last regroup."""

    def watch_tag_wait(self, on: bool) -> None:
        """Attach or detach the pair of probes that sees waits for tags."""

    def rescan(self) -> None:
        """Look again whether there are devices without a driver queue, which need probes of their own."""

    def slowest(self) -> tuple[NDArray[np.uint64], list[str]]:
        """Take the slowest I/Os of the interval that `read` closed: shape (n, len(SLOW_COLUMNS)), and commands."""

    def losses(self) -> Mapping[str, int]:
        """Tell what was lost since the start, by name."""

    def close(self) -> None:
        """Detach everything; may be called twice."""
