"""Fields of disks, and the shared and additional fields of paths and HBA ports."""

from __future__ import annotations

from typing import Unpack

from collectors.field import Field, Shown, Thresholds, Unit, with_sources
from collectors.tables.block.field_sources import BLOCK_SOURCES
from engine.replacing import replace
from engine.statistics.verdict import Better


def _disk(id_: str, title: str, unit: Unit, help_: str, **shown: Unpack[Shown]) -> Field:
    return Field(id_, "disks", title, unit, help_, **shown)


_DISPATCH_MS = 0.020
"""Queue times of dispatching, which are below the resolution of sampling, too (collectors/derive/queue_split.py)."""

DISK_FIELDS: tuple[Field, ...] = (
    _disk(
        "heat",
        "Heat",
        Unit.COUNT,
        "How hot, 0 to 100: busy % x (0.4 + 0.3 x queue share of await + 0.3 x share of the I/O time of all disks).",
        hot=Thresholds(50, 80),
        digits=3,
    ),
    _disk("iops", "IOPS", Unit.PER_SECOND, "Completed reads and writes per second."),
    _disk("reads_per_s", "r/s", Unit.PER_SECOND, "Completed reads per second."),
    _disk("writes_per_s", "w/s", Unit.PER_SECOND, "Completed writes per second."),
    _disk("bytes_per_s", "B/s", Unit.BYTES_PER_SECOND, "Bytes read and written per second."),
    _disk("read_bytes_per_s", "rB/s", Unit.BYTES_PER_SECOND, "Bytes read per second."),
    _disk("write_bytes_per_s", "wB/s", Unit.BYTES_PER_SECOND, "Bytes written per second."),
    _disk("discards_per_s", "d/s", Unit.PER_SECOND, "Completed discards per second.", better=Better.NEITHER),
    _disk("flushes_per_s", "f/s", Unit.PER_SECOND, "Completed flushes per second.", better=Better.NEITHER),
    _disk(
        "read_merges_per_s",
        "rrqm/s",
        Unit.PER_SECOND,
        "Reads merged into another request per second.",
        better=Better.NEITHER,
    ),
    _disk(
        "write_merges_per_s",
        "wrqm/s",
        Unit.PER_SECOND,
        "Writes merged into another request per second.",
        better=Better.NEITHER,
    ),
    _disk(
        "await_ms",
        "await",
        Unit.MILLISECONDS,
        "Queue plus service time per read or write; shown if total I/O time >= 2 ms in the interval.",
        hot=Thresholds(20, 50),
    ),
    _disk("read_await_ms", "r await", Unit.MILLISECONDS, "Queue plus service time per read.", hot=Thresholds(20, 50)),
    _disk("write_await_ms", "w await", Unit.MILLISECONDS, "Queue plus service time per write.", hot=Thresholds(20, 50)),
    _disk(
        "queue_ms",
        "Q",
        Unit.MILLISECONDS,
        "Queue time per I/O: from accounted start to the driver. Sampled: 0 where within 20 us + 20 % of await.",
        hot=Thresholds(2, 10),
        floor=_DISPATCH_MS,
    ),
    _disk(
        "tag_wait_ms",
        "Tag",
        Unit.MILLISECONDS,
        "Wait per I/O for a free tag, before Q begins; watched while a queue is full, or when asked for. Exact only.",
    ),
    _disk(
        "service_ms",
        "S",
        Unit.MILLISECONDS,
        "Service time per I/O: from the driver to completion. Sampled: about +-20 %.",
        hot=Thresholds(20, 50),
    ),
    _disk(
        "in_flight",
        "aqu-sz",
        Unit.COUNT,
        "Outstanding I/Os, averaged over the interval (Little's law); if I/Os outlast it, those at its ends.",
    ),
    _disk(
        "in_flight_peak",
        "max inflight",
        Unit.COUNT,
        "Most I/Os at once: exact while one CPU group submits, else the most that samples saw.",
        digits=5,
    ),
    _disk(
        "busy_pct",
        "Busy",
        Unit.PERCENT,
        "Share of the interval with at least one I/O outstanding. Kernel ticks: only near 0 and 100 to be trusted.",
        hot=Thresholds(70, 95),
    ),
    _disk("read_bytes_per_io", "r size", Unit.BYTES, "Mean size of a read."),
    _disk("write_bytes_per_io", "w size", Unit.BYTES, "Mean size of a write."),
    _disk("p50_ms", "p50", Unit.MILLISECONDS, "Service time that half of the I/Os stayed within. Exact only."),
    _disk(
        "p99_ms",
        "p99",
        Unit.MILLISECONDS,
        "Service time that 99 % of the I/Os stayed within. Exact only.",
        hot=Thresholds(50, 200),
    ),
    _disk(
        "p999_ms",
        "p99.9",
        Unit.MILLISECONDS,
        "Service time that 99.9 % of the I/Os stayed within; needs 1,000 I/Os in the interval. Exact only.",
        hot=Thresholds(100, 500),
    ),
    _disk("service_max_ms", "S max", Unit.MILLISECONDS, "The largest service time in the interval. Exact only."),
    _disk(
        "queue_p99_ms",
        "Q p99",
        Unit.MILLISECONDS,
        "Queue time that 99 % of the I/Os stayed within. Exact only.",
        floor=_DISPATCH_MS,
    ),
    _disk("queue_max_ms", "Q max", Unit.MILLISECONDS, "The largest queue time in the interval. Exact only."),
    _disk(
        "max_ms",
        "Peak",
        Unit.MILLISECONDS,
        "Peak latency: the largest Q + S of one I/O in the interval. Exact only.",
        hot=Thresholds(100, 500),
    ),
)

_NEW = "new ones since the last reading of the counters"
_BENIGN = "SCSI includes harmless ones, such as those of probing."

_OF_PATHS = (
    Field(
        "lun_share_pct",
        "paths",
        "Share",
        Unit.PERCENT,
        "This path's part of the reads and writes that all paths of its LUN completed.",
    ),
    Field(
        "queue_limit", "paths", "Limit", Unit.COUNT, "Outstanding commands the path admits (queue_depth).", counts=True
    ),
    Field("limit_pct", "paths", "%limit", Unit.PERCENT, "Outstanding I/Os as a share of what the path admits."),
    Field(
        "new_errors",
        "paths",
        "+err",
        Unit.COUNT,
        f"Failed commands, {_NEW}. {_BENIGN}",
        hot=Thresholds(1, 10),
        counts=True,
        better=Better.LOWER,
    ),
    Field(
        "new_timeouts",
        "paths",
        "+tmo",
        Unit.COUNT,
        f"Commands that timed out, {_NEW}.",
        hot=Thresholds(1, 1),
        counts=True,
        better=Better.LOWER,
    ),
    Field(
        "new_retries",
        "paths",
        "+retry",
        Unit.COUNT,
        f"Commands sent again, {_NEW} (NVMe, from 7.2).",
        counts=True,
        better=Better.LOWER,
    ),
    Field(
        "new_failovers",
        "paths",
        "+fail",
        Unit.COUNT,
        f"I/Os moved to another path, {_NEW} (NVMe, from 7.2).",
        hot=Thresholds(1, 10),
        counts=True,
        better=Better.LOWER,
    ),
    Field(
        "errors",
        "paths",
        "errors",
        Unit.COUNT,
        f"Failed commands since the path was added. {_BENIGN}",
        counts=True,
        since_start=True,
    ),
    Field(
        "timeouts",
        "paths",
        "timeouts",
        Unit.COUNT,
        "Commands that timed out since the path was added.",
        counts=True,
        since_start=True,
    ),
)

PATH_FIELDS: tuple[Field, ...] = (
    *(replace(field, table="paths") for field in DISK_FIELDS if field.id != "heat"),
    *_OF_PATHS,
)

_PORT_HELP = {
    "busy_pct": "Share of the interval with at least one I/O outstanding on any path of the port; never a sum.",
    "queue_ms": "Queue time per I/O of all paths of the port, where the in-flight sampler saw nine tenths of them.",
    "service_ms": "Service time per I/O, likewise.",
    "in_flight": "Outstanding I/Os of all paths of the port, averaged over the interval (Little's law).",
}

_OF_PORTS = (
    Field(
        "busy_low_pct",
        "hbas",
        "Busy>=",
        Unit.PERCENT,
        "Least the port can have been busy: as much as the busiest of its paths.",
    ),
    Field(
        "busy_high_pct",
        "hbas",
        "Busy<=",
        Unit.PERCENT,
        "Most the port can have been busy: all of its paths one after the other, at most 100 %.",
    ),
    Field("paths", "hbas", "Paths", Unit.COUNT, "Paths through this port.", counts=True),
    Field("queue_limit", "hbas", "Limit", Unit.COUNT, "Outstanding commands the port admits (can_queue).", counts=True),
    Field("limit_pct", "hbas", "%limit", Unit.PERCENT, "Outstanding I/Os as a share of what the port admits."),
    Field(
        "new_errors",
        "hbas",
        "+err",
        Unit.COUNT,
        f"Failed commands of all paths, {_NEW}. {_BENIGN}",
        hot=Thresholds(1, 10),
        counts=True,
        better=Better.LOWER,
    ),
    Field(
        "new_timeouts",
        "hbas",
        "+tmo",
        Unit.COUNT,
        f"Commands of all paths that timed out, {_NEW}.",
        hot=Thresholds(1, 1),
        counts=True,
        better=Better.LOWER,
    ),
    Field(
        "new_retries",
        "hbas",
        "+retry",
        Unit.COUNT,
        f"Commands of all paths sent again, {_NEW}.",
        counts=True,
        better=Better.LOWER,
    ),
    Field(
        "new_command_errors",
        "hbas",
        "+cerr",
        Unit.COUNT,
        f"Errors of the controller's commands, {_NEW} (NVMe).",
        hot=Thresholds(1, 10),
        counts=True,
        better=Better.LOWER,
    ),
    Field(
        "new_link_errors",
        "hbas",
        "+link",
        Unit.COUNT,
        f"Times the link was lost or reset, {_NEW} (FC, SAS).",
        hot=Thresholds(1, 10),
        counts=True,
        better=Better.LOWER,
    ),
    Field(
        "new_frame_errors",
        "hbas",
        "+frame",
        Unit.COUNT,
        f"Damaged or dropped frames and words, {_NEW} (FC, SAS).",
        hot=Thresholds(1, 10),
        counts=True,
        better=Better.LOWER,
    ),
    Field(
        "new_resets",
        "hbas",
        "+reset",
        Unit.COUNT,
        f"Resets of the controller, {_NEW} (NVMe).",
        hot=Thresholds(1, 1),
        counts=True,
        better=Better.LOWER,
    ),
    Field(
        "new_reconnects",
        "hbas",
        "+reconn",
        Unit.COUNT,
        f"Reconnects of the controller, {_NEW} (NVMe fabrics).",
        hot=Thresholds(1, 1),
        counts=True,
        better=Better.LOWER,
    ),
)

_NOT_OF_PORTS = frozenset({"heat", "read_merges_per_s", "write_merges_per_s"})

PORT_FIELDS: tuple[Field, ...] = (
    *(
        replace(field, table="hbas", help=_PORT_HELP.get(field.id, field.help))
        for field in DISK_FIELDS
        if field.id not in _NOT_OF_PORTS
    ),
    *_OF_PORTS,
)

DISK_FIELDS, PATH_FIELDS, PORT_FIELDS = (
    with_sources(fields, BLOCK_SOURCES) for fields in (DISK_FIELDS, PATH_FIELDS, PORT_FIELDS)
)

BLOCK_FIELDS = {"disks": DISK_FIELDS, "paths": PATH_FIELDS, "hbas": PORT_FIELDS}
"""Fields by frame table."""
