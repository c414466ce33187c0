"""The raw tables this version records; a session stores its own copy, so older files keep theirs."""

from __future__ import annotations

from collectors.model import Column, Kind, Schema

_COUNTER, _COUNTER32, _GAUGE, _PEAK = Kind.COUNTER, Kind.COUNTER32, Kind.GAUGE, Kind.PEAK

DISKSTATS_COLUMNS: tuple[Column, ...] = (
    Column("reads", _COUNTER),
    Column("reads_merged", _COUNTER),
    Column("read_sectors", _COUNTER),
    Column("read_ms", _COUNTER32),
    Column("writes", _COUNTER),
    Column("writes_merged", _COUNTER),
    Column("write_sectors", _COUNTER),
    Column("write_ms", _COUNTER32),
    Column("in_flight_now", _GAUGE),
    Column("busy_ms", _COUNTER32),
    Column("weighted_ms", _COUNTER32),
    Column("discards", _COUNTER),
    Column("discards_merged", _COUNTER),
    Column("discard_sectors", _COUNTER),
    Column("discard_ms", _COUNTER32),
    Column("flushes", _COUNTER),
    Column("flush_ms", _COUNTER32),
)
"""Fields 4 to 20 of /proc/diskstats in kernel order (Documentation/admin-guide/iostats.rst); the native reader fills
them in this order and leaves MISSING where an older kernel has fewer. Fields of later kernels are not read."""

DISK = Schema(
    "disk",
    (
        *DISKSTATS_COLUMNS,
        Column("driver_in_flight_sum", _COUNTER),
        Column("driver_in_flight_samples", _COUNTER),
        Column("driver_busy_samples", _COUNTER),
        Column("driver_in_flight_peak", _PEAK),
        Column("driver_accounted_sum", _COUNTER),
        Column("driver_accounted_samples", _COUNTER),
        Column("driver_accounted_squares", _COUNTER),
        Column("driver_queued_sum", _COUNTER),
        Column("driver_unbroken_us", _GAUGE),
    ),
)
"""One row per whole block device. The `driver_*` columns come from the in-flight sampler: sum of the requests seen in
the driver, number of samples, samples that saw at least one, and the most seen at once; from `driver_accounted_sum` on
what `in_flight_now` was at the same instants: its sum, samples with any, the sum of its squares, the sum of what was
waiting for a full driver, and for how long every sample had seen some. Sessions of earlier versions do not have those
five."""

HOST = Schema(
    "host",
    (
        Column("cpu_user_us", _COUNTER),
        Column("cpu_system_us", _COUNTER),
        Column("cpu_idle_us", _COUNTER),
        Column("cpu_iowait_us", _COUNTER),
        Column("cpu_irq_us", _COUNTER),
        Column("cpu_steal_us", _COUNTER),
        Column("cpus", _GAUGE),
        Column("memory_total_bytes", _GAUGE),
        Column("memory_available_bytes", _GAUGE),
        Column("dirty_bytes", _GAUGE),
        Column("writeback_bytes", _GAUGE),
        Column("psi_io_some_us", _COUNTER),
        Column("psi_io_full_us", _COUNTER),
        Column("psi_cpu_some_us", _COUNTER),
        Column("psi_memory_some_us", _COUNTER),
    ),
)

PROCESS = Schema(
    "process",
    (
        Column("pid", _GAUGE),
        Column("read_bytes", _GAUGE),
        Column("write_bytes", _GAUGE),
        Column("cancelled_write_bytes", _GAUGE),
        Column("syscalls_read", _GAUGE),
        Column("syscalls_write", _GAUGE),
        Column("span_us", _GAUGE),
    ),
)
"""Processes that did I/O of late; key "pid:start time". Processes are read less often than disks: the counters are what
they grew by over `span_us`, the time between their last two readings, and stand until the next one."""

LOAD = Schema(
    "load",
    (
        Column("read_ios", _COUNTER),
        Column("read_bytes", _COUNTER),
        Column("read_latency_ns", _COUNTER),
        Column("read_peak_ns", _PEAK),
        Column("write_ios", _COUNTER),
        Column("write_bytes", _COUNTER),
        Column("write_latency_ns", _COUNTER),
        Column("write_peak_ns", _PEAK),
        Column("errors", _COUNTER),
        Column("in_flight_now", _GAUGE),
        Column("queue_depth", _GAUGE),
        Column("active", _GAUGE),
        Column("failing", _GAUGE),
        Column("epoch", _GAUGE),
        Column("skipped", _COUNTER),
        Column("read_service_ns", _COUNTER),
        Column("write_service_ns", _COUNTER),
    ),
)
"""One row per target of the load; `active` is 1 while the target is inside the stripe width, `failing` is 1
while the engine only probes it after repeated errors. Latencies are from submit to
reap on the engine's own clock. Histograms of the same name have the series "read" and "write".
In an open loop latencies count from the moment an I/O was meant to be issued; times from submit to reap are the
`*_service_ns` columns and the histograms "load_service". `skipped` counts arrivals that found no room in time."""

LOAD_PATH = Schema(
    "load_path",
    (
        Column("read_ios", _COUNTER),
        Column("read_bytes", _COUNTER),
        Column("read_latency_ns", _COUNTER),
        Column("read_peak_ns", _PEAK),
        Column("write_ios", _COUNTER),
        Column("write_bytes", _COUNTER),
        Column("write_latency_ns", _COUNTER),
        Column("write_peak_ns", _PEAK),
        Column("errors", _COUNTER),
        Column("in_flight_now", _GAUGE),
        Column("failed", _GAUGE),
        Column("target", _GAUGE),
    ),
)
"""One row per path of those targets of the load that have several: what went over it, by the engine's own clock, and
attempts that failed; `failed` is 1 while it is only probed, `target` the row in LOAD."""

LOAD_LOGICAL = Schema(
    "load_logical",
    LOAD_PATH.columns[:9],
)
"""One row: I/Os of the load before they were cut into parts or copied; the latency of each is that of its slowest part.
No rows while each is one part."""

TAPE = Schema(
    "tape",
    (
        Column("reads", _COUNTER),
        Column("writes", _COUNTER),
        Column("others", _COUNTER),
        Column("read_bytes", _COUNTER),
        Column("write_bytes", _COUNTER),
        Column("read_ns", _COUNTER),
        Column("write_ns", _COUNTER),
        Column("io_ns", _COUNTER),
        Column("residuals", _COUNTER),
        Column("in_flight_now", _GAUGE),
    ),
)
"""One row per tape drive, from its `stats` (Documentation/scsi/st.rst). `io_ns` is the time of all commands, also of
those that neither read nor write; a command's time is added when it ends."""

GROUP = Schema(
    "group",
    (
        Column("driver_in_flight_sum", _COUNTER),
        Column("driver_in_flight_samples", _COUNTER),
        Column("driver_busy_samples", _COUNTER),
        Column("driver_in_flight_peak", _PEAK),
    ),
)
"""One row per HBA port or NVMe head that the in-flight sampler looks at as a whole, by its key in the graph; columns as
in the DISK table: what all members have in their drivers is added up in each look."""

PATH_ERRORS = Schema(
    "path_errors",
    (
        Column("errors", _COUNTER),
        Column("timeouts", _COUNTER),
        Column("retries", _COUNTER),
        Column("failovers", _COUNTER),
    ),
)
"""One row per path whose errors the kernel counts; read more seldom than disks, so that several ticks may have the same
values."""

PATH_STATE = Schema("path_state", (Column("age_ms", _GAUGE),))
"""One row: how long before the sample the states of all paths were last read."""

PORT_ERRORS = Schema(
    "port_errors",
    (
        Column("command_errors", _COUNTER),
        Column("link_errors", _COUNTER),
        Column("frame_errors", _COUNTER),
        Column("resets", _COUNTER),
        Column("reconnects", _COUNTER),
    ),
)
"""One row per HBA port whose driver counts errors, by its key in the graph; read every half minute or more seldom."""

TRACE = Schema(
    "trace",
    (
        Column("reads", _COUNTER),
        Column("writes", _COUNTER),
        Column("others", _COUNTER),
        Column("read_bytes", _COUNTER),
        Column("write_bytes", _COUNTER),
        Column("queue_read_ns", _COUNTER),
        Column("queue_write_ns", _COUNTER),
        Column("service_read_ns", _COUNTER),
        Column("service_write_ns", _COUNTER),
        Column("tag_waits", _COUNTER),
        Column("tag_wait_ns", _COUNTER),
        Column("busy_ns", _COUNTER),
        Column("in_flight_now", _GAUGE),
        Column("in_driver_now", _GAUGE),
        Column("in_driver_peak", _PEAK),
        Column("queue_max_ns", _PEAK),
        Column("service_max_ns", _PEAK),
        Column("latency_max_ns", _PEAK),
        Column("unstamped", _COUNTER),
        Column("errors", _COUNTER),
    ),
)
"""One row per device that did I/O while the kernel's block tracepoints were watched, under its key of the disk table; a
row that appears has counted from 0. Everything counts when an I/O completes. `unstamped` are those of which the queue
time is not known (queue/iostats is 0): their times are in no queue column. The largest latency is that of queue and
service time together. Histograms of the same name have the series of TRACE_SERIES."""

TRACE_SERIES = ("queue_read", "queue_write", "service_read", "service_write")

TRACE_GROUP = Schema("trace_group", (Column("busy_ns", _COUNTER), Column("busy_devices_now", _GAUGE)))
"""One row per HBA port, target port and NVMe head: time with any of its devices busy; keys as group_key makes them."""

TRACER = Schema(
    "tracer",
    (
        Column("started_ns", _GAUGE),
        Column("clock_ns", _COUNTER),
        Column("tag_wait_on", _GAUGE),
        Column("table_full", _COUNTER),
        Column("unseen", _COUNTER),
        Column("stale", _COUNTER),
        Column("healed", _COUNTER),
        Column("untracked_devices", _COUNTER),
        Column("series_without_histogram", _COUNTER),
        Column("recursion_misses", _COUNTER),
        Column("rescued", _COUNTER),
    ),
)
"""One row: since when the tracepoints are watched and when TRACE was read (CLOCK_MONOTONIC), whether waits for tags are
watched, and what was lost or saved: I/Os that found no place, that were first seen when they ended, that were not seen
to end or were taken for ended, what found no room in the tables, program runs that the kernel skipped, and I/Os that
the second copy of a program saw instead."""

SLOW_IO = Schema(
    "slow_io",
    tuple(
        Column(name, _GAUGE)
        for name in (
            "completed_ns",
            "major",
            "minor",
            "operation",
            "sector",
            "bytes",
            "tag_wait_ns",
            "queue_ns",
            "service_ns",
            "pid",
            "thread",
            "cgroup",
            "command_low",
            "command_high",
        )
    ),
)
"""The slowest I/Os of each device since the sample before, slowest first; keys are ranks. `completed_ns` is
CLOCK_MONOTONIC, the operation that of `enum req_op`, the wait for a tag missing where it is not known, the command the
16 bytes of the kernel's `comm` as two little-endian numbers."""

SLOW_LOAD = Schema(
    "slow_load",
    tuple(
        Column(name, _GAUGE)
        for name in ("target", "direction", "offset", "bytes", "issued_ns", "latency_ns", "major", "minor")
    ),
)
"""The slowest I/Os of the load since the sample before, slowest first; keys are ranks. `target` is the row in LOAD,
`direction` 0 for reads and 1 for writes, `issued_ns` CLOCK_MONOTONIC at submission, the latency until it was reaped;
`major` and `minor` are of the device that the target is or lies on."""

SCHEMAS: dict[str, Schema] = {
    schema.name: schema
    for schema in (
        DISK,
        HOST,
        PROCESS,
        LOAD,
        LOAD_PATH,
        LOAD_LOGICAL,
        TAPE,
        GROUP,
        PATH_ERRORS,
        PATH_STATE,
        PORT_ERRORS,
        TRACE,
        TRACE_GROUP,
        TRACER,
        SLOW_IO,
        SLOW_LOAD,
    )
}

LOST_SHARE = 0.05
"""Of all I/Os of the host in an interval: with more of them lost, means, largest and busy time may be anyone's."""


def group_key(kind: str, key: str) -> str:
    """Key in TRACE_GROUP of a thing of the graph; kind is "lun", "hba" or "target"."""
    return f"{kind} {key}"
