"""Disk fields of the registry from the sums of an interval, with the tier of each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from collectors.derive.counter_deltas import Values, ratio
from collectors.derive.disk_interval import DiskInterval
from collectors.derive.queue_split import sampled_times
from collectors.derive.quotients import Quotients
from collectors.hotness import hotness
from collectors.model import FrameTable, HostFacts, Rows, Tier, Topology
from collectors.tables.block.derive.layers import layer_figures
from collectors.tables.block.fields import BLOCK_FIELDS, DISK_FIELDS

Mask = NDArray[np.bool_]
Codes = NDArray[np.uint8]

MIN_TIME_MS = 2.0
MIN_TIME_BIO_MS = 20.0
"""Summed latency that an interval needs before its mean is significant.

The kernel prints the times in whole milliseconds: one I/O of 50 us may show as a full millisecond. The times of
bio-based devices are counted in ticks of 1 to 10 ms.
"""

_COUNTED = Quotients(DISK_FIELDS, lambda field: Tier.KERNEL in field.given_by)
"""Figures of the kernel's counters."""

_TIERS_WHEN_IDLE = {
    field.id: Tier.KERNEL if Tier.KERNEL in field.given_by else Tier.NONE
    for field in DISK_FIELDS
    if Tier.SAMPLED in field.given_by
}
"""Fields with a tier that varies by disk, and the tier of an idle disk."""


def disk_table(
    rows: Rows, intervals: Iterable[DiskInterval], topology: Topology, heads: DiskInterval | None = None
) -> FrameTable:
    """All disk fields over one interval except those that depend on other disks, which `with_others` adds.

    Disks with accounting off (`queue/iostats` is 0) are NaN throughout: their counters do not change under load.

    Args:
        rows: all disks; those in none of `intervals` were idle throughout.
        intervals: sums of the other disks, each disk in one of them.
        topology: facts of the devices and their host.
        heads: sums over the paths of multipath heads that do not count their I/O; they also replace the figures of
            heads with accounting off.
    """
    bio_based, blind = _mask(rows, topology.bio_based), _mask(rows, topology.uncounted)
    if heads is not None:
        bio_based[heads.at] = False
        blind[heads.at] = False
    unsplit = bio_based if splits_at_driver(topology.host) else np.ones(len(rows), np.bool_)
    counted = counts_queued(topology.host)
    columns, tiers = when_idle("disks", len(rows))
    for interval in (*intervals, *([] if heads is None else [heads])):
        at = interval.at
        figures, marks = figures_of(interval, bio_based[at], unsplit[at], counts_queued=counted)
        if isinstance(at, slice) and at == slice(0, len(rows)):
            columns, tiers = columns | figures, tiers | marks
            continue
        for field_id, values in figures.items():
            columns[field_id][at] = values
        for field_id, codes in marks.items():
            tiers[field_id][at] = codes
    _blank(blind, columns, tiers)
    return FrameTable(rows, columns, tiers)


def with_others(tables: Mapping[str, FrameTable], topology: Topology) -> dict[str, FrameTable]:
    """Add what depends on the figures of other disks: hotness on those of all, and layers on those below."""
    disks = tables["disks"]
    inputs = (disks.columns[field_id] for field_id in ("busy_pct", "in_flight", "queue_ms", "service_ms", "stalled_ms"))
    added = {"heat": hotness(*inputs), **layer_figures(disks, topology)}
    return {**tables, "disks": disks.with_columns(added)}


def splits_at_driver(host: HostFacts) -> bool:
    """Whether sysfs `inflight` counts requests in the driver only.

    True from 5.0, where every request queue is blk-mq; before, it may include queued ones. An unknown kernel version
    counts as a current one.
    """
    version = _version(host.kernel)
    return version is None or version >= (5, 0)


def counts_queued(host: HostFacts) -> bool:
    """Whether `in_flight_now` is known to count I/Os from their accounted start on, queued ones among them.

    True from 6.16; before, most kernels count requests in the driver (`part_in_flight` of block/genhd.c). An unknown
    kernel version counts as a current one.
    """
    version = _version(host.kernel)
    return version is None or version >= (6, 16)


@lru_cache
def _version(kernel: str) -> tuple[int, int] | None:
    found = re.match(r"([0-9]{1,6})(?:\.([0-9]{1,6}))?", kernel)
    return None if found is None else (int(found[1]), int(found[2] or 0))


def uncounted_rows(rows: Rows, topology: Topology) -> Mask:
    """Rows with I/O accounting off: their counters do not change under load."""
    return _mask(rows, topology.uncounted)


def _mask(rows: Rows, keys: Iterable[str]) -> Mask:
    mask = np.zeros(len(rows), np.bool_)
    for key in keys:
        if key in rows.positions:
            mask[rows.positions[key]] = True
    return mask


def when_idle(table: str, rows: int) -> tuple[dict[str, Values], dict[str, Codes]]:
    """Columns and tiers of idle disks or ports; columns that need probes share one array of NaN."""
    zeros, means = _idle_fields(table)
    columns = dict.fromkeys((field.id for field in BLOCK_FIELDS[table]), np.full(rows, np.nan))
    columns |= dict(zip(zeros, np.zeros((len(zeros), rows)), strict=True))
    columns |= dict(zip(means, np.full((len(means), rows), np.nan), strict=True))
    codes = np.empty((len(_TIERS_WHEN_IDLE), rows), np.uint8)
    codes.T[:] = list(_TIERS_WHEN_IDLE.values())
    return columns, dict(zip(_TIERS_WHEN_IDLE, codes, strict=True))


@lru_cache
def _idle_fields(table: str) -> tuple[list[str], list[str]]:
    """Fields that are 0 for idle disks or ports, and those that are means per I/O."""
    known = [field for field in BLOCK_FIELDS[table] if field.given_by != (Tier.EXACT,)]
    zeros = [field.id for field in known if field.zero_when_idle or (field.sums and not field.per)]
    return zeros, [field.id for field in known if field.id not in zeros]


def _blank(blind: Mask, columns: Mapping[str, Values], tiers: Mapping[str, Codes]) -> None:
    """Set every figure of the given rows to NaN."""
    if blind.any():
        for values in columns.values():
            values[blind] = np.nan
        for marks in tiers.values():
            marks[blind] = Tier.NONE


def figures_of(
    interval: DiskInterval, bio_based: Mask, unsplit: Mask, *, counts_queued: bool
) -> tuple[dict[str, Values], dict[str, Codes]]:
    """Fields and tiers of the disks or groups of an interval, except fields that need probes or peers.

    All arrays are new: those of the interval are never modified.
    """
    sums = interval.sums
    sampled = sampled_times(sums, unsplit, counts_queued=counts_queued)
    by_ticks = np.isnan(sampled.busy_share)
    figures = _COUNTED.of({**sums, **_significant_times(sums, bio_based)}) | {
        "queue_ms": sampled.queue_ms,
        "service_ms": sampled.service_ms,
        "busy_pct": 100.0 * np.where(by_ticks, ratio(sums["busy_s"], sums["elapsed_s"]), sampled.busy_share),
        "in_flight_peak": interval.peaks.copy(),
    }
    known = ~np.isnan([figures[field_id] for field_id in _TIERS_WHEN_IDLE])
    tiers = dict(zip(_TIERS_WHEN_IDLE, known * np.uint8(Tier.SAMPLED), strict=True))
    busy_tiers = tiers["busy_pct"]
    busy_tiers[by_ticks & (busy_tiers > 0)] = Tier.KERNEL
    return figures, tiers


def _significant_times(sums: Mapping[str, Values], bio_based: Mask) -> dict[str, Values]:
    """Time of the completed I/Os; NaN where it is too little for a mean."""
    needed_ms = np.where(bio_based, MIN_TIME_BIO_MS, MIN_TIME_MS)
    times = {"io": sums["read_ms"] + sums["write_ms"], "read": sums["read_ms"], "write": sums["write_ms"]}
    return {f"{kind}_time_ms": np.where(time_ms >= needed_ms, time_ms, np.nan) for kind, time_ms in times.items()}
