"""Raw tables of disks, of the paths and HBA ports that lead to them, and of their exact time."""

from __future__ import annotations

from collectors.model import Column, Kind, Schema

TRACE = Schema(
    "trace",
    (
        Column("reads", Kind.COUNTER),
        Column("writes", Kind.COUNTER),
        Column("others", Kind.COUNTER),
        Column("read_bytes", Kind.COUNTER),
        Column("write_bytes", Kind.COUNTER),
        Column("queue_read_ns", Kind.COUNTER),
        Column("queue_write_ns", Kind.COUNTER),
        Column("service_read_ns", Kind.COUNTER),
        Column("service_write_ns", Kind.COUNTER),
        Column("tag_waits", Kind.COUNTER),
        Column("tag_wait_ns", Kind.COUNTER),
        Column("busy_ns", Kind.COUNTER),
        Column("in_flight_now", Kind.GAUGE),
        Column("in_driver_now", Kind.GAUGE),
        Column("in_driver_peak", Kind.PEAK),
        Column("queue_max_ns", Kind.PEAK),
        Column("service_max_ns", Kind.PEAK),
        Column("latency_max_ns", Kind.PEAK),
        Column("unstamped", Kind.COUNTER),
        Column("errors", Kind.COUNTER),
        Column("lost_in_driver_ns", Kind.COUNTER),
        Column("in_driver_peak_most", Kind.PEAK),
        Column("uncounted", Kind.COUNTER),
        Column("splits", Kind.COUNTER),
    ),
)
"""One row per device with I/O while the block tracepoints were attached, under its key of the disk table; a new row
has counted from 0. An I/O is counted when it completes. `unstamped` are I/Os with an unknown queue time
(queue/iostats is 0): their times are in no queue column. The largest latency is that of queue plus service time.
`busy_ns` is the least it can have been: the time with any I/O in the driver that was seen from issue to completion.
`lost_in_driver_ns` is the time beside it in which an I/O whose completion was missed was taken to be in the driver:
busy time is at most longer by as much. Earlier versions counted it in `busy_ns`; sessions of even earlier ones lack
it. I/Os in the driver are counted by groups of CPUs: as many as `in_driver_peak` were there at once, and no more than
`in_driver_peak_most`; the two are equal while one group issues. `uncounted` are times of I/Os that no histogram had
room for. `splits` counts each cut of an I/O that is too large for the device, when it is submitted; devices without
requests have none. Histograms of the same name have the series of TRACE_SERIES."""

TRACE_SERIES = ("queue_read", "queue_write", "service_read", "service_write")

TRACE_GROUP = Schema("trace_group", (Column("busy_ns", Kind.COUNTER), Column("busy_devices_now", Kind.GAUGE)))
"""One row per HBA port, target port and NVMe head: time with any of its devices busy; keys as group_key makes them."""

TAG_WAITS_TIMED, NO_TAG_WAITS = 1, 2
"""Bits of `tag_wait_on`: waits for tags are timed from now on; nobody has waited since the sample before."""

TRACER = Schema(
    "tracer",
    (
        Column("started_ns", Kind.GAUGE),
        Column("clock_ns", Kind.COUNTER),
        Column("tag_wait_on", Kind.GAUGE),
        Column("table_full", Kind.COUNTER),
        Column("unseen", Kind.COUNTER),
        Column("stale", Kind.COUNTER),
        Column("healed", Kind.COUNTER),
        Column("untracked_devices", Kind.COUNTER),
        Column("series_without_histogram", Kind.COUNTER),
        Column("recursion_misses", Kind.COUNTER),
        Column("rescued", Kind.COUNTER),
        Column("program_time_ns", Kind.COUNTER),
        Column("program_runs", Kind.COUNTER),
    ),
)
"""One row: when the tracepoints were attached and when TRACE was read (CLOCK_MONOTONIC), what is known of waits for
tags, and losses: I/Os that found the table full, I/Os first traced at completion, I/Os with a missed completion or
taken as completed, devices and ranges of latencies that found the tables full, program runs that the kernel skipped,
and I/Os that the second copy of a program traced instead; last the kernel's statistics of the programs (run_time_ns,
run_cnt), which stand still unless kernel.bpf_stats_enabled is set."""

SLOW_IO = Schema(
    "slow_io",
    tuple(
        Column(name, Kind.GAUGE)
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
"""The slowest I/Os of each device since the previous sample, slowest first; keys are ranks. `completed_ns` is
CLOCK_MONOTONIC, the operation is of `enum req_op`, the wait for a tag is missing if unknown, the command is the 16
bytes of the kernel's `comm` as two little-endian numbers."""

LOST_SHARE = 0.05
"""Largest share of lost I/Os of the host in an interval; with more only lower bounds of busy time and maxima hold."""

LOST_BUSY_SHARE = 0.01
"""Largest share of the busy time of a device by which lost I/Os leave it open; with more it is marked as at least."""


def group_key(kind: str, key: str) -> str:
    """Key in TRACE_GROUP of an element of the graph; kind is "lun", "hba" or "target"."""
    return f"{kind} {key}"


DISKSTATS_COLUMNS: tuple[Column, ...] = (
    Column("reads", Kind.COUNTER),
    Column("reads_merged", Kind.COUNTER),
    Column("read_sectors", Kind.COUNTER),
    Column("read_ms", Kind.COUNTER32),
    Column("writes", Kind.COUNTER),
    Column("writes_merged", Kind.COUNTER),
    Column("write_sectors", Kind.COUNTER),
    Column("write_ms", Kind.COUNTER32),
    Column("in_flight_now", Kind.GAUGE),
    Column("busy_ms", Kind.COUNTER32),
    Column("weighted_ms", Kind.COUNTER32),
    Column("discards", Kind.COUNTER),
    Column("discards_merged", Kind.COUNTER),
    Column("discard_sectors", Kind.COUNTER),
    Column("discard_ms", Kind.COUNTER32),
    Column("flushes", Kind.COUNTER),
    Column("flush_ms", Kind.COUNTER32),
)
"""Fields 4 to 20 of /proc/diskstats in kernel order (Documentation/admin-guide/iostats.rst); the native reader fills
them in this order and leaves MISSING where an older kernel has fewer. Fields of later kernels are not read."""

DISK = Schema(
    "disk",
    (
        *DISKSTATS_COLUMNS,
        Column("driver_in_flight_sum", Kind.COUNTER),
        Column("driver_in_flight_samples", Kind.COUNTER),
        Column("driver_busy_samples", Kind.COUNTER),
        Column("driver_in_flight_peak", Kind.PEAK),
        Column("driver_accounted_sum", Kind.COUNTER),
        Column("driver_accounted_samples", Kind.COUNTER),
        Column("driver_accounted_squares", Kind.COUNTER),
        Column("driver_queued_sum", Kind.COUNTER),
        Column("driver_unbroken_us", Kind.GAUGE),
        Column("stalled_ms", Kind.GAUGE),
    ),
)
"""One row per whole block device. The `driver_*` columns come from the in-flight sampler: sum of the requests in the
driver, number of samples, samples with at least one, and the most in any sample; from `driver_accounted_sum` on the
values of `in_flight_now` at the same instants: its sum, samples with any, the sum of its squares, the sum of I/Os
waiting for a full driver, and how long every sample had any. Sessions of earlier versions do not have those five.
`stalled_ms` is how long I/Os have been outstanding at every sample while none completed; earlier versions lack it."""

GROUP = Schema(
    "group",
    (
        Column("driver_in_flight_sum", Kind.COUNTER),
        Column("driver_in_flight_samples", Kind.COUNTER),
        Column("driver_busy_samples", Kind.COUNTER),
        Column("driver_in_flight_peak", Kind.PEAK),
    ),
)
"""One row per HBA port or NVMe head sampled as a whole, by its key in the graph; columns as in the DISK table: each
sample is the sum of the requests in the drivers of all members."""

PATH_ERRORS = Schema(
    "path_errors",
    (
        Column("errors", Kind.COUNTER),
        Column("timeouts", Kind.COUNTER),
        Column("retries", Kind.COUNTER),
        Column("failovers", Kind.COUNTER),
    ),
)
"""One row per path with error counters; read less often than disks, so that several ticks may have the same values."""

PATH_STATE = Schema("path_state", (Column("age_ms", Kind.GAUGE),))
"""One row: age of the states of all paths at the sample."""

PORT_ERRORS = Schema(
    "port_errors",
    (
        Column("command_errors", Kind.COUNTER),
        Column("link_errors", Kind.COUNTER),
        Column("frame_errors", Kind.COUNTER),
        Column("resets", Kind.COUNTER),
        Column("reconnects", Kind.COUNTER),
        Column("link_failures", Kind.COUNTER),
        Column("sync_losses", Kind.COUNTER),
        Column("signal_losses", Kind.COUNTER),
        Column("error_frames", Kind.COUNTER),
        Column("invalid_crcs", Kind.COUNTER),
        Column("invalid_words", Kind.COUNTER),
        Column("dumped_frames", Kind.COUNTER),
        Column("dword_sync_losses", Kind.COUNTER),
        Column("phy_reset_problems", Kind.COUNTER),
        Column("invalid_dwords", Kind.COUNTER),
        Column("disparity_errors", Kind.COUNTER),
    ),
)
"""One row per HBA port with error counters, by its key in the graph; read every half minute or less often. From
`link_failures` on each is a file of the transport, Fibre Channel or SAS; `link_errors` and `frame_errors` are sums of
them."""
