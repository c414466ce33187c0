"""Interface of a tracer of the block tracepoints, run by this process or by the probe helper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from collectors.model import HistogramScale

SCALE = HistogramScale(unit_ns=64, sub_bits=4)
"""Scale of the programs' histograms: buckets at most 6.25 % wide."""

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
"""Columns of a slow I/O in the programs' buffer."""

PROCESS_COLUMNS = (
    "row",
    "process",
    "kind",
    "started_ns",
    "cgroup",
    "reads",
    "writes",
    "read_bytes",
    "write_bytes",
    "latency_ns",
    "command_0",
    "command_1",
    "command_2",
    "command_3",
)
"""Columns of a process on a device; see engine._native.PROCESS_COLUMNS."""

Cells = tuple[NDArray[np.uint32], NDArray[np.uint8], NDArray[np.uint16], NDArray[np.uint64]]

ProcessIos = tuple[NDArray[np.uint64], NDArray[np.uint64]]
"""Shape (n, len(PROCESS_COLUMNS)), and histogram cells of shape (m, 3): position in the first, bucket, count."""


def no_process_ios() -> ProcessIos:
    """Return no rows."""
    return np.zeros((0, len(PROCESS_COLUMNS)), np.uint64), np.zeros((0, 3), np.uint64)


class Tracer(Protocol):
    """Counters and histograms of all devices with I/O since attaching; implemented by engine._native.BlockTracer.

    All calls come from one thread. They raise OSError when the tracer has ended.
    """

    @property
    def generation(self) -> int:
        """Incremented when a row is added or assigned to another device."""

    def names(self) -> list[str]:
        """Kernel names of the rows."""

    def numbers(self) -> NDArray[np.uint32]:
        """Device numbers of the rows, shape (n, 2): major, minor."""

    def read(self) -> NDArray[np.uint64]:
        """Shape (n, columns of TRACE); peaks are those since the last call."""

    def cells(self) -> Cells:
        """Return the counts added to the histograms since the last call: row, index in TRACE_SERIES, bucket, count."""

    def regroup(self, groups: Sequence[Sequence[str]]) -> object:
        """Count busy time of these groups of devices, by kernel name, from now on."""

    def read_groups(self) -> NDArray[np.uint64]:
        """Shape (groups, columns of TRACE_GROUP), in the order of the last regroup."""

    def watch_tag_wait(self, on: bool) -> None:
        """Attach or detach the pair of probes that time waits for tags."""

    def rescan(self) -> None:
        """Check again for devices without a driver queue, which need separate probes."""

    def slowest(self) -> tuple[NDArray[np.uint64], list[str]]:
        """Take the slowest I/Os of the interval that `read` closed: shape (n, len(SLOW_COLUMNS)), and commands."""

    def processes(self) -> ProcessIos:
        """Return what processes did on each device since the last call."""

    def losses(self) -> Mapping[str, int]:
        """Losses since the start, by name."""

    def close(self) -> None:
        """Detach everything; may be called twice."""
