"""The raw table of I/O by process and device, and names and keys of its rows."""

from __future__ import annotations

from enum import IntEnum

from collectors.model import Column, HistogramScale, Kind, Schema, Topology
from engine.text import safe_text

TABLE = "process_ios"
"""Id of the frame table."""


class Submitter(IntEnum):
    """What submitted an I/O, as the programs of exact time say it."""

    PROCESS = 1
    KERNEL = 2
    """A thread of the kernel, such as the journal of a filesystem."""
    WORKQUEUE = 3
    """Workers of the kernel; the workqueue says what for: writeback, loop0, kcryptd."""


def row_key(disk: str, submitter: str) -> str:
    """Key of a row: that of the device, then that of the process (`process_key`, `workqueue_key`)."""
    return f"{disk} {submitter}"


def parts_of(key: str) -> tuple[str, str]:
    """Return the device's and the process's key from a key made by `row_key`."""
    disk, _, submitter = key.partition(" ")
    return disk, submitter


def process_key(pid: int, started_ticks: int | None) -> str:
    """Key of a process, as in the table of processes: pid and start time."""
    return f"{pid}:{'' if started_ticks is None else started_ticks}"


def workqueue_key(name: str) -> str:
    """Key of all workers of a workqueue together."""
    return f"workqueue {name}"


def submitter_name(kind: int, pid: int, command: str) -> str:
    """Name of a row: `command[pid]`, a thread of the kernel in brackets as in ps(1), or a workqueue."""
    if kind == Submitter.WORKQUEUE:
        return f"{command or '?'} (kworker)"
    return f"[{command}]" if kind == Submitter.KERNEL else f"{command or '?'}[{pid}]"


def device_name(disk: str, topology: Topology) -> str:
    """Kernel name of a device by its key, safe to print."""
    device = topology.devices.get(disk)
    return safe_text(disk.partition(":")[0] if device is None else device.name)


SUMS = ("reads", "writes", "read_bytes", "write_bytes", "latency_ns")

PROCESS_IO = Schema(
    "process_io",
    (
        Column("pid", Kind.GAUGE),
        Column("kind", Kind.GAUGE),
        Column("cgroup", Kind.GAUGE),
        *(Column(name, Kind.INTERVAL) for name in SUMS),
    ),
)
"""Processes that had reads or writes completed since the previous sample, by device: the busiest of each device. An I/O
belongs to the process that submitted it to the device, which for buffered writes is a worker of the kernel. `kind` is
of Submitter, the pid is missing for a workqueue, the cgroup is that of the thread that submitted first. The time is
queue plus service time as in TRACE, of reads and writes together. Histograms of the same name have one series."""

PROCESS_SERIES = ("total",)
PROCESS_SCALE = HistogramScale(unit_ns=1024, sub_bits=2)
"""Buckets at most 25 % wide, in steps of a microsecond below 4 us; longer than 34 s counts as 34 s."""

MOST_ROWS = 256
"""Rows of an interval."""

PROCESS_LEFT = Schema(
    "process_left",
    (
        Column("rows", Kind.INTERVAL),
        Column("ios", Kind.INTERVAL),
        Column("without_process", Kind.COUNTER),
    ),
)
"""One row: rows of the interval beyond the most, their I/Os, and I/Os since tracing began that are counted for no
process as the table of the programs was full."""
