"""Raw tables of disks, and of the paths and HBA ports that lead to them."""

from __future__ import annotations

from collectors.model import Column, Kind, Schema

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
    ),
)
"""One row per whole block device. The `driver_*` columns come from the in-flight sampler: sum of the requests in the
driver, number of samples, samples with at least one, and the most in any sample; from `driver_accounted_sum` on the
values of `in_flight_now` at the same instants: its sum, samples with any, the sum of its squares, the sum of I/Os
waiting for a full driver, and how long every sample had any. Sessions of earlier versions do not have those five."""

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
    ),
)
"""One row per HBA port with error counters, by its key in the graph; read every half minute or less often."""
