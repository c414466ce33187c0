"""Counters of whole disks: node_exporter's names for what /proc/diskstats counts, own names for exact time.

Names and help are those of node_exporter's collector/diskstats_common.go. Disks are LUNs: their paths are a level of
their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from collectors.derive.counter_deltas import positions
from collectors.kernel.identity import SECTOR_BYTES
from collectors.metrics.family import (
    ColumnFamily,
    Family,
    MetricPart,
    MetricPoint,
    Values,
    counter,
    first_of_each,
    gauge,
    labels,
    name_labels,
    of_columns,
)
from collectors.metrics.view import MetricLevel, MetricView
from collectors.model import Rows, Topology
from collectors.tables.block.schema import DISK, TRACE

_MS = 1_000
_NS = 1_000_000_000
_IN_FLIGHT_LIMIT = 1 << 31


def _disk(name: str, help_: str, column: str, *, times: int = 1, per: int = 1) -> ColumnFamily:
    return ColumnFamily(counter(f"node_disk_{name}_total", help_, "device"), (MetricPart(column),), times, per)


DISKSTATS = (
    _disk("reads_completed", "The total number of reads completed successfully.", "reads"),
    _disk("reads_merged", "The total number of reads merged.", "reads_merged"),
    _disk("read_bytes", "The total number of bytes read successfully.", "read_sectors", times=SECTOR_BYTES),
    _disk("read_time_seconds", "The total number of seconds spent by all reads.", "read_ms", per=_MS),
    _disk("writes_completed", "The total number of writes completed successfully.", "writes"),
    _disk("writes_merged", "The number of writes merged.", "writes_merged"),
    _disk("written_bytes", "The total number of bytes written successfully.", "write_sectors", times=SECTOR_BYTES),
    _disk("write_time_seconds", "This is the total number of seconds spent by all writes.", "write_ms", per=_MS),
    ColumnFamily(
        gauge("node_disk_io_now", "The number of I/Os currently in progress.", "device"),
        (MetricPart("in_flight_now"),),
        below=_IN_FLIGHT_LIMIT,
    ),
    _disk("io_time_seconds", "Total seconds spent doing I/Os.", "busy_ms", per=_MS),
    _disk("io_time_weighted_seconds", "The weighted # of seconds spent doing I/Os.", "weighted_ms", per=_MS),
    _disk("discards_completed", "The total number of discards completed successfully.", "discards"),
    _disk("discards_merged", "The total number of discards merged.", "discards_merged"),
    _disk("discarded_sectors", "The total number of sectors discarded successfully.", "discard_sectors"),
    _disk("discard_time_seconds", "This is the total number of seconds spent by all discards.", "discard_ms", per=_MS),
    _disk("flush_requests", "The total number of flush requests completed successfully", "flushes"),
    _disk(
        "flush_requests_time_seconds",
        "This is the total number of seconds spent by all flush requests.",
        "flush_ms",
        per=_MS,
    ),
)

INFO = gauge(
    "lunscope_disk_info", "Identity of a disk.", "device", "label", "wwid", "vendor", "model", "serial", "kind"
)
SIZE = gauge("lunscope_disk_size_bytes", "Capacity of a disk.", "device")


def exact_families(subject: str, *label_names: str) -> tuple[ColumnFamily, ...]:
    """Families of a disk or path that only exact time has."""
    return (
        ColumnFamily(
            counter(
                f"lunscope_{subject}_busy_seconds_total",
                "Time with at least one I/O in the driver, by exact time since it was attached.",
                *label_names,
            ),
            (MetricPart("busy_ns"),),
            per=_NS,
        ),
        ColumnFamily(
            counter(
                f"lunscope_{subject}_lost_in_driver_seconds_total",
                "Time that I/Os whose completion was missed were taken to be in the driver; "
                "busy time is at most as much too long.",
                *label_names,
            ),
            (MetricPart("lost_in_driver_ns"),),
            per=_NS,
        ),
        ColumnFamily(
            counter(f"lunscope_{subject}_io_errors_total", "I/Os that completed with an error.", *label_names),
            (MetricPart("errors"),),
        ),
        ColumnFamily(
            counter(
                f"lunscope_{subject}_tag_waits_total",
                "I/Os that waited for a free tag, counted while a queue was full.",
                *label_names,
            ),
            (MetricPart("tag_waits"),),
        ),
        ColumnFamily(
            counter(f"lunscope_{subject}_tag_wait_seconds_total", "Time waited for free tags.", *label_names),
            (MetricPart("tag_wait_ns"),),
            per=_NS,
        ),
        ColumnFamily(
            counter(
                f"lunscope_{subject}_io_splits_total",
                "Times that an I/O was cut in two, as it was too large for the device.",
                *label_names,
            ),
            (MetricPart("splits"),),
        ),
    )


EXACT = exact_families("disk", "device")
FAMILIES: tuple[Family, ...] = (*(one.family for one in (*DISKSTATS, *EXACT)), INFO, SIZE)


def traced(
    families: Sequence[ColumnFamily], view: MetricView, chosen: Rows, rendered: Sequence[str]
) -> Iterator[MetricPoint]:
    """Measure families of exact time for chosen rows of the disk table; those without I/O so far are left out."""
    table = view.table(TRACE.name)
    if table is None:
        return
    at = positions(table.rows, chosen.keys)
    found = np.flatnonzero(at >= 0)
    yield from of_columns(families, table, [rendered[row] for row in found.tolist()], at[found])


def _measure(view: MetricView) -> Iterator[MetricPoint]:
    roles, disks = view.roles, view.table(DISK.name)
    rendered = name_labels(roles.disks, "device")
    one_each = first_of_each(rendered)
    labels_of = [rendered[row] for row in one_each.tolist()]
    yield from of_columns(DISKSTATS, disks, labels_of, roles.disk_at[one_each])
    yield from traced(EXACT, view, roles.disks, rendered)
    yield from _facts(roles.disks, view.sample.topology)


def _facts(disks: Rows, topology: Topology) -> Iterator[MetricPoint]:
    known = [
        (name, topology.devices[key])
        for key, name in zip(disks.keys, disks.names, strict=True)
        if key in topology.devices
    ]
    info = {
        labels(
            device=name,
            label=one.friendly_name,
            wwid=one.persistent_id,
            vendor=one.vendor,
            model=one.model,
            serial=one.serial,
            kind=one.kind,
        ): 1
        for name, one in known
    }
    sizes = {labels(device=name): one.size_bytes for name, one in known if one.size_bytes is not None}
    if info:
        yield MetricPoint(INFO, (Values(tuple(info), tuple(info.values())),))
    if sizes:
        yield MetricPoint(SIZE, (Values(tuple(sizes), tuple(sizes.values())),))


DISK_LEVEL = MetricLevel("disks", "counters of whole disks (LUNs)", FAMILIES, _measure)
