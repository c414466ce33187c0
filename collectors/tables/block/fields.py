"""Fields of disks, and the shared and additional fields of paths and HBA ports."""

from __future__ import annotations

from functools import partial

from collectors.field import Combine, Distribution, Field, Thresholds, Unit
from collectors.model import Part, Tier
from collectors.tables.block.schema import TRACE
from engine.replacing import replace
from engine.statistics.verdict import Better

_COUNTS = "/proc/diskstats"
_TIMES = "exact: block tracepoints; else /proc/diskstats, time spent reading and writing"
_SPLIT = "exact: tracepoints block_rq_issue, block_rq_complete; sampled: /sys/block/*/inflight"
_SPLITS = "tracepoints block_split, block_rq_complete"
_EXACT = "histograms of the block tracepoints"
_BUSY = "exact: block tracepoints; sampled: /sys/block/*/inflight; kernel: io_ticks of /proc/diskstats"
_ERRORS = "SCSI: ioerr_cnt, iotmo_cnt of /sys/block/*/device; NVMe: diag/ of the path (from 7.2)"

_SERVICE = Distribution("service time", TRACE.name, Part.SERVICE)
_QUEUE = Distribution("queue time", TRACE.name, Part.QUEUE)

_disk = partial(Field, table="disks", source=_COUNTS)
_per_s = partial(_disk, unit=Unit.PER_SECOND)
_bytes_per_s = partial(_disk, unit=Unit.BYTES_PER_SECOND)
_timed_ms = partial(_disk, unit=Unit.MILLISECONDS, source=_TIMES, given_by=(Tier.KERNEL, Tier.EXACT))
_split_ms = partial(_disk, unit=Unit.MILLISECONDS, source=_SPLIT, given_by=(Tier.SAMPLED, Tier.EXACT), per="iops")
_exact_ms = partial(_disk, unit=Unit.MILLISECONDS, source=_EXACT, given_by=(Tier.EXACT,))
_percentile = partial(_exact_ms, per="iops", distribution=_SERVICE)
_peak = partial(_exact_ms, peak=True)


def _below(field_id: str, title: str, what: str, per: str) -> Field:
    help_ = f"{what} per {per} Where all it is built on is its own."
    source = "computed from the disks below"
    return _disk(field_id, title, help_, Unit.COUNT, source=source, better=Better.NEITHER, combine=Combine.NONE)


_path = partial(Field, table="paths")
_total = partial(_path, unit=Unit.COUNT, source=_ERRORS, counts=True, since_start=True)
_new = partial(_path, unit=Unit.COUNT, source=_ERRORS, counts=True, better=Better.LOWER)
_port = partial(Field, table="hbas")
_new_of_port = partial(_port, unit=Unit.COUNT, counts=True, better=Better.LOWER)

_DISPATCH_MS = 0.020
"""Queue times of dispatching, which are below the resolution of sampling, too (collectors/derive/queue_split.py)."""

DISK_FIELDS: tuple[Field, ...] = (
    _disk(
        "heat",
        "Heat",
        "How hot, 0 to 100: busy % x (0.4 + 0.3 x queue share of await + 0.3 x share of the I/O time of all disks).",
        Unit.COUNT,
        hot=Thresholds(50, 80),
        digits=3,
        source="computed from busy %, queue time and I/O time",
        zero_when_idle=True,
    ),
    _per_s("iops", "IOPS", "Completed reads and writes per second.", sums="reads writes"),
    _per_s("reads_per_s", "r/s", "Completed reads per second.", sums="reads"),
    _per_s("writes_per_s", "w/s", "Completed writes per second.", sums="writes"),
    _bytes_per_s("bytes_per_s", "B/s", "Bytes read and written per second.", sums="read_bytes write_bytes"),
    _bytes_per_s("read_bytes_per_s", "rB/s", "Bytes read per second.", sums="read_bytes"),
    _bytes_per_s("write_bytes_per_s", "wB/s", "Bytes written per second.", sums="write_bytes"),
    _per_s("discards_per_s", "d/s", "Completed discards per second.", better=Better.NEITHER, sums="discards"),
    _per_s("flushes_per_s", "f/s", "Completed flushes per second.", better=Better.NEITHER, sums="flushes"),
    _per_s(
        "read_merges_per_s",
        "rrqm/s",
        "Reads merged into another request per second.",
        better=Better.NEITHER,
        sums="read_merges",
    ),
    _per_s(
        "write_merges_per_s",
        "wrqm/s",
        "Writes merged into another request per second.",
        better=Better.NEITHER,
        sums="write_merges",
    ),
    _timed_ms(
        "await_ms",
        "await",
        "Queue plus service time per read or write; shown if total I/O time >= 2 ms in the interval.",
        hot=Thresholds(20, 50),
        sums="io_time_ms",
        per="iops",
    ),
    _timed_ms(
        "read_await_ms",
        "r await",
        "Queue plus service time per read.",
        hot=Thresholds(20, 50),
        sums="read_time_ms",
        per="reads_per_s",
    ),
    _timed_ms(
        "write_await_ms",
        "w await",
        "Queue plus service time per write.",
        hot=Thresholds(20, 50),
        sums="write_time_ms",
        per="writes_per_s",
    ),
    _split_ms(
        "queue_ms",
        "Q",
        "Queue time per I/O: from accounted start to the driver. Sampled: 0 where within 20 us + 20 % of await.",
        hot=Thresholds(2, 10),
        floor=_DISPATCH_MS,
    ),
    _disk(
        "tag_wait_ms",
        "Tag",
        "Wait per I/O for a free tag, before Q begins; watched while a queue is full, or when asked for. Exact only.",
        Unit.MILLISECONDS,
        source="tracepoints block_bio_queue, block_getrq; from Linux 7.2 block_rq_tag_wait",
        given_by=(Tier.EXACT,),
        sums="tag_wait_ns",
        per="iops",
        factor=1e-6,
    ),
    _split_ms(
        "service_ms",
        "S",
        "Service time per I/O: from the driver to completion. Sampled: about +-20 %.",
        hot=Thresholds(20, 50),
    ),
    _disk(
        "in_flight",
        "aqu-sz",
        "Outstanding I/Os, averaged over the interval (Little's law); if I/Os outlast it, those at its ends.",
        Unit.COUNT,
        source=_TIMES,
        sums="outstanding_io_s",
    ),
    _disk(
        "in_flight_peak",
        "max inflight",
        "Most I/Os at once: exact while one CPU group submits, else the most that samples saw.",
        Unit.COUNT,
        digits=5,
        source=_SPLIT,
        given_by=(Tier.SAMPLED, Tier.EXACT),
        peak=True,
        combine=Combine.NONE,
    ),
    _disk(
        "stalled_ms",
        "Stalled",
        "Time for which I/Os were outstanding at every sample and none completed: at most one interval too short.",
        Unit.MILLISECONDS,
        hot=Thresholds(1_000, 2_000),
        better=Better.LOWER,
        combine=Combine.LARGEST,
    ),
    _disk(
        "busy_pct",
        "Busy",
        "Share of the interval with at least one I/O outstanding. Kernel ticks: only near 0 and 100 to be trusted.",
        Unit.PERCENT,
        hot=Thresholds(70, 95),
        source=_BUSY,
        given_by=(Tier.KERNEL, Tier.SAMPLED, Tier.EXACT),
        zero_when_idle=True,
    ),
    _disk(
        "whole_per_s",
        "whole/s",
        "Reads and writes per second before the kernel cut those too large for the device. Exact only.",
        Unit.PER_SECOND,
        source=_SPLITS,
        given_by=(Tier.EXACT,),
        better=Better.NEITHER,
        sums="whole_ios",
    ),
    _disk(
        "parts_per_io",
        "parts",
        "Requests that one I/O became: above 1 where it was too large for max_sectors_kb and the like. Exact only.",
        Unit.COUNT,
        source=_SPLITS,
        given_by=(Tier.EXACT,),
        better=Better.LOWER,
        sums="reads writes",
        per="whole_per_s",
    ),
    _below("ios_below_ratio", "below", "I/Os below", "I/O of this one: cut, mirrored, with parity, copied on write."),
    _below("bytes_below_ratio", "below B", "Bytes read and written below", "byte of this one."),
    _disk("read_bytes_per_io", "r size", "Mean size of a read.", Unit.BYTES, sums="read_bytes", per="reads_per_s"),
    _disk("write_bytes_per_io", "w size", "Mean size of a write.", Unit.BYTES, sums="write_bytes", per="writes_per_s"),
    _percentile("p50_ms", "p50", "Service time that half of the I/Os stayed within. Exact only.", percent=50.0),
    _percentile(
        "p99_ms",
        "p99",
        "Service time that 99 % of the I/Os stayed within. Exact only.",
        hot=Thresholds(50, 200),
        percent=99.0,
    ),
    _percentile(
        "p999_ms",
        "p99.9",
        "Service time that 99.9 % of the I/Os stayed within; needs 1,000 I/Os in the interval. Exact only.",
        hot=Thresholds(100, 500),
        percent=99.9,
    ),
    _peak("service_max_ms", "S max", "The largest service time in the interval. Exact only.", distribution=_SERVICE),
    _percentile(
        "queue_p99_ms",
        "Q p99",
        "Queue time that 99 % of the I/Os stayed within. Exact only.",
        floor=_DISPATCH_MS,
        percent=99.0,
        distribution=_QUEUE,
    ),
    _peak("queue_max_ms", "Q max", "The largest queue time in the interval. Exact only.", distribution=_QUEUE),
    _peak(
        "max_ms",
        "Peak",
        "Peak latency: the largest Q + S of one I/O in the interval. Exact only.",
        hot=Thresholds(100, 500),
    ),
)

OF_OTHERS = frozenset({"heat", "ios_below_ratio", "bytes_below_ratio"})
"""Figures of disks that depend on those of others."""

_SINCE = "new ones since the last reading of the counters"
_BENIGN = "SCSI includes harmless ones, such as those of probing."

_OF_PATHS = (
    _path(
        "lun_share_pct",
        "Share",
        "This path's part of the reads and writes that all paths of its LUN completed.",
        Unit.PERCENT,
        source="computed from the I/Os of all paths of the LUN",
    ),
    _path(
        "queue_limit",
        "Limit",
        "Outstanding commands the path admits (queue_depth).",
        Unit.COUNT,
        counts=True,
        source="queue_depth or can_queue in sysfs",
        combine=Combine.NONE,
    ),
    _path(
        "limit_pct",
        "%limit",
        "Outstanding I/Os as a share of what the path admits.",
        Unit.PERCENT,
        source="queue_depth or can_queue in sysfs",
    ),
    _new("new_errors", "+err", f"Failed commands, {_SINCE}. {_BENIGN}", hot=Thresholds(1, 10)),
    _new("new_timeouts", "+tmo", f"Commands that timed out, {_SINCE}.", hot=Thresholds(1, 1)),
    _new("new_retries", "+retry", f"Commands sent again, {_SINCE} (NVMe, from 7.2)."),
    _new("new_failovers", "+fail", f"I/Os moved to another path, {_SINCE} (NVMe, from 7.2).", hot=Thresholds(1, 10)),
    _total("errors", "errors", f"Failed commands since the path was added. {_BENIGN}"),
    _total("timeouts", "timeouts", "Commands that timed out since the path was added."),
)

PATH_FIELDS: tuple[Field, ...] = (
    *(replace(field, table="paths") for field in DISK_FIELDS if field.id not in OF_OTHERS),
    *_OF_PATHS,
)

_PORT_HELP = {
    "busy_pct": "Share of the interval with at least one I/O outstanding on any path of the port; never a sum.",
    "queue_ms": "Queue time per I/O of all paths of the port, where the in-flight sampler saw nine tenths of them.",
    "service_ms": "Service time per I/O, likewise.",
    "in_flight": "Outstanding I/Os of all paths of the port, averaged over the interval (Little's law).",
}

_OF_PORTS = (
    _port(
        "busy_low_pct",
        "Busy>=",
        "Least the port can have been busy: as much as the busiest of its paths.",
        Unit.PERCENT,
        source="computed from the busy % of the paths",
    ),
    _port(
        "busy_high_pct",
        "Busy<=",
        "Most the port can have been busy: all of its paths one after the other, at most 100 %.",
        Unit.PERCENT,
        source="computed from the busy % of the paths",
    ),
    _port("paths", "Paths", "Paths through this port.", Unit.COUNT, counts=True, source="the device graph of sysfs"),
    _port(
        "queue_limit",
        "Limit",
        "Outstanding commands the port admits (can_queue).",
        Unit.COUNT,
        counts=True,
        source="queue_depth or can_queue in sysfs",
        combine=Combine.NONE,
    ),
    _port(
        "limit_pct",
        "%limit",
        "Outstanding I/Os as a share of what the port admits.",
        Unit.PERCENT,
        source="queue_depth or can_queue in sysfs",
    ),
    _new_of_port(
        "new_errors",
        "+err",
        f"Failed commands of all paths, {_SINCE}. {_BENIGN}",
        hot=Thresholds(1, 10),
        source=_ERRORS,
    ),
    _new_of_port(
        "new_timeouts", "+tmo", f"Commands of all paths that timed out, {_SINCE}.", hot=Thresholds(1, 1), source=_ERRORS
    ),
    _new_of_port("new_retries", "+retry", f"Commands of all paths sent again, {_SINCE}.", source=_ERRORS),
    _new_of_port(
        "new_command_errors",
        "+cerr",
        f"Errors of the controller's commands, {_SINCE} (NVMe).",
        hot=Thresholds(1, 10),
        source="diag/ of the NVMe controller (from 7.2)",
    ),
    _new_of_port(
        "new_link_errors",
        "+link",
        f"Times the link was lost or reset, {_SINCE} (FC, SAS).",
        hot=Thresholds(1, 10),
        source="/sys/class/fc_host/*/statistics, /sys/class/sas_phy",
    ),
    _new_of_port(
        "new_frame_errors",
        "+frame",
        f"Damaged or dropped frames and words, {_SINCE} (FC, SAS).",
        hot=Thresholds(1, 10),
        source="/sys/class/fc_host/*/statistics, /sys/class/sas_phy",
    ),
    _new_of_port(
        "new_resets",
        "+reset",
        f"Resets of the controller, {_SINCE} (NVMe).",
        hot=Thresholds(1, 1),
        source="diag/ of the NVMe controller (from 7.2)",
    ),
    _new_of_port(
        "new_reconnects",
        "+reconn",
        f"Reconnects of the controller, {_SINCE} (NVMe fabrics).",
        hot=Thresholds(1, 1),
        source="diag/ of the NVMe controller (from 7.2)",
    ),
)

_NOT_OF_PORTS = OF_OTHERS | {"read_merges_per_s", "write_merges_per_s", "stalled_ms"}

PORT_FIELDS: tuple[Field, ...] = (
    *(
        replace(field, table="hbas", help=_PORT_HELP.get(field.id, field.help))
        for field in DISK_FIELDS
        if field.id not in _NOT_OF_PORTS
    ),
    *_OF_PORTS,
)

_OWN_OF_PORTS = frozenset(field.id for field in _OF_PORTS)
_OF_PATHS_TOGETHER = ("busy_low_pct", "busy_high_pct", "new_errors", "new_timeouts", "new_retries")


def _together(table: str, what: str, *counts: Field) -> tuple[Field, ...]:
    """Fields of a group of paths or disks that has no counters of its own: those of ports, in words of the group."""
    own = tuple(field for field in PORT_FIELDS if field.id not in _OWN_OF_PORTS or field.id in _OF_PATHS_TOGETHER)
    return (*(replace(field, table=table, help=field.help.replace("the port", what)) for field in own), *counts)


TARGET_FIELDS = _together(
    "target_ports",
    "the target port",
    Field(
        "paths",
        "Paths",
        "Paths to this target port.",
        Unit.COUNT,
        "target_ports",
        "the device graph of sysfs",
        counts=True,
    ),
)
HOST_FIELDS = _together(
    "whole_host",
    "the host",
    Field(
        "paths",
        "Disks",
        "Disks and paths that are built on nothing else.",
        Unit.COUNT,
        "whole_host",
        "the device graph of sysfs",
        counts=True,
    ),
)

BLOCK_FIELDS = {
    "disks": DISK_FIELDS,
    "paths": PATH_FIELDS,
    "hbas": PORT_FIELDS,
    "target_ports": TARGET_FIELDS,
    "whole_host": HOST_FIELDS,
}
"""Fields by frame table."""
