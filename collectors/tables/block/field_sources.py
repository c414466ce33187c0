"""Where the figures of disks, paths and HBA ports come from, in the words of the kernel's documentation."""

from __future__ import annotations

from collections.abc import Mapping

_COUNTS = "/proc/diskstats"
_TIMES = "exact: block tracepoints; else /proc/diskstats, time spent reading and writing"
_SPLIT = "exact: tracepoints block_rq_issue, block_rq_complete; sampled: /sys/block/*/inflight"
_EXACT = "histograms of the block tracepoints"
_BUSY = "exact: block tracepoints; sampled: /sys/block/*/inflight; kernel: io_ticks of /proc/diskstats"
_ERRORS = "SCSI: ioerr_cnt, iotmo_cnt of /sys/block/*/device; NVMe: diag/ of the path (from 7.2)"

BLOCK_SOURCES: Mapping[str, tuple[str, ...]] = {
    _COUNTS: (
        "iops",
        "reads_per_s",
        "writes_per_s",
        "bytes_per_s",
        "read_bytes_per_s",
        "write_bytes_per_s",
        "discards_per_s",
        "flushes_per_s",
        "read_merges_per_s",
        "write_merges_per_s",
        "read_bytes_per_io",
        "write_bytes_per_io",
    ),
    _TIMES: ("await_ms", "read_await_ms", "write_await_ms", "in_flight"),
    _SPLIT: ("queue_ms", "service_ms", "in_flight_peak"),
    "tracepoints block_bio_queue, block_getrq; from Linux 7.2 block_rq_tag_wait": ("tag_wait_ms",),
    _EXACT: ("p50_ms", "p99_ms", "p999_ms", "service_max_ms", "queue_p99_ms", "queue_max_ms", "max_ms"),
    _BUSY: ("busy_pct",),
    "computed from busy %, queue time and I/O time": ("heat",),
    "computed from the I/Os of all paths of the LUN": ("lun_share_pct",),
    "computed from the busy % of the paths": ("busy_low_pct", "busy_high_pct"),
    "queue_depth or can_queue in sysfs": ("queue_limit", "limit_pct"),
    _ERRORS: ("new_errors", "new_timeouts", "new_retries", "new_failovers", "errors", "timeouts"),
    "the device graph of sysfs": ("paths",),
    "diag/ of the NVMe controller (from 7.2)": ("new_command_errors", "new_resets", "new_reconnects"),
    "/sys/class/fc_host/*/statistics, /sys/class/sas_phy": ("new_link_errors", "new_frame_errors"),
}
"""Field ids by source."""
