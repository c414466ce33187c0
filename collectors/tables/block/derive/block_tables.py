"""Sums of all disks over an interval, and the frame tables of disks, paths and HBA ports made from them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.derive.counter_deltas import Values, ratio
from collectors.derive.disk_interval import DiskInterval, disk_intervals
from collectors.derive.inflight_samples import NO_GROUP_SAMPLES, GroupSamples, group_samples, with_group_samples
from collectors.derive.roles import HOST_ROWS, Roles, host_of_row, roles
from collectors.model import MISSING, Column, FrameTable, HostFacts, Rows, Sample, Table, Tier, Topology
from collectors.subject import interval_s
from collectors.tables.block.derive.disk_figures import (
    counts_queued,
    disk_table,
    figures_of,
    splits_at_driver,
    uncounted_rows,
    when_idle,
)
from collectors.tables.block.derive.traced import Traced, traced
from collectors.tables.block.fields import OF_OTHERS
from collectors.tables.block.schema import DISK, DISKSTATS_COLUMNS, GROUP


class BlockInterval(Struct, frozen=True, eq=False):
    """Sums of the raw tables of disks, groups and tracepoints over an interval; the arrays are never modified."""

    moved: Sequence[DiskInterval]
    sampled_groups: GroupSamples
    traced: Traced | None


@functools.lru_cache(maxsize=1)
def block_interval(previous: Sample | None, current: Sample) -> BlockInterval:
    """Compute the sums between two samples with a disk table; the last result is cached.

    A report derives the frame of an interval and adds the same interval to its averages.
    """
    elapsed_s = interval_s(previous, current)
    before = {} if previous is None else previous.tables
    moved = disk_intervals(before.get(DISK.name), current.tables[DISK.name], elapsed_s, current.topology.host.long_bits)
    sampled_groups = group_samples(before.get(GROUP.name), current.tables.get(GROUP.name), elapsed_s)
    return BlockInterval(tuple(moved), sampled_groups, traced(previous, current))


_NOT_ADDED = frozenset({"elapsed_s", "sampled_s", "sampled_busy_s", "busy_s"})
"""Sums that are not additive over disks: elapsed time is the same for all of them."""

_SPOKEN_FOR = 0.9
"""Share of a group's I/Os on sampled devices from which on their queue time represents the group."""


class GroupSums(Struct, frozen=True, eq=False):
    """Sums of groups of rows; an unknown amount of one row makes that of its group unknown.

    `interval` has the sums of collectors.derive.disk_interval. Busy times of several rows may overlap, so the true busy
    time is between that of the busiest row, `busy_s`, and the sum, `most_busy_s`.
    """

    interval: DiskInterval
    most_busy_s: Values


def group_sums(
    intervals: Iterable[DiskInterval],
    group_of_row: NDArray[np.intp],
    groups: int,
    elapsed_s: float,
    unknown_rows: NDArray[np.bool_],
) -> GroupSums:
    """Add up rows by group.

    Args:
        intervals: sums of rows; rows in none of them were idle.
        group_of_row: group of each row, -1 for none.
        groups: number of groups.
        elapsed_s: length of the interval.
        unknown_rows: rows with I/O accounting off; their groups are unknown.
    """
    sums: dict[str, Values] = {}
    least_s, total_s = np.zeros(groups), np.zeros(groups)
    for interval in intervals:
        group = group_of_row[interval.at] + 1  # Rows without a group are added up too, as group 0, which is dropped.
        known: dict[int, Values] = {}  # Quantities that are 0 throughout are one array.
        for quantity, values in interval.sums.items():
            if quantity in _NOT_ADDED:
                continue
            if id(values) not in known:
                known[id(values)] = np.bincount(group, values, groups + 1)[1:].astype(np.float64)
            added = known[id(values)]
            sums[quantity] = sums[quantity] + added if quantity in sums else added.copy()
        busy_s = interval.sums["busy_s"]
        busiest_s = np.zeros(groups + 1)
        with np.errstate(invalid="ignore"):
            np.maximum.at(busiest_s, group, busy_s)
            np.maximum(least_s, busiest_s[1:], out=least_s)
        total_s += np.bincount(group, busy_s, groups + 1)[1:]
    sums = sums or {quantity: np.zeros(groups) for quantity in ("reads", "writes")}
    blind = np.zeros(groups, np.bool_)
    blind[group_of_row[unknown_rows & (group_of_row >= 0)]] = True
    for values in (*sums.values(), least_s, total_s):
        values[blind] = np.nan
    sums |= {
        "elapsed_s": np.full(groups, elapsed_s),
        "sampled_s": np.zeros(groups),
        "sampled_busy_s": np.zeros(groups),
        "busy_s": least_s,
    }
    if "paired_sample_count" in sums:
        spoken_for = sums["paired_ios"] >= _SPOKEN_FOR * (sums["reads"] + sums["writes"])
        sums["paired_sample_count"] = np.where(spoken_for, sums["paired_sample_count"], 0.0)
    return GroupSums(DiskInterval(slice(groups), sums, np.full(groups, np.nan)), np.minimum(total_s, elapsed_s))


_SAME_BUSY = 0.005
"""Largest difference of least and most busy time, as a share of the interval, to show them as one figure."""


def block_tables(
    rows: Rows,
    intervals: Sequence[DiskInterval],
    topology: Topology,
    elapsed_s: float,
    silent: NDArray[np.bool_],
    *,
    sampled_groups: GroupSamples = NO_GROUP_SAMPLES,
    stalled_ms: Values | None = None,
) -> dict[str, FrameTable]:
    """Frame tables "disks", without hotness, "whole_host", and if the graph has paths, "paths", "hbas", "target_ports".

    Args:
        rows: rows of the disk table.
        intervals: sums of the rows with I/O, each row in one of them.
        topology: its graph gives the roles of the rows.
        elapsed_s: length of the interval.
        silent: rows that have never counted anything; an NVMe head among them shows the I/O of its paths.
        sampled_groups: in-flight samples of whole ports and NVMe heads.
        stalled_ms: time without a completion while I/Os are outstanding; None where it is not known.
    """
    part = roles(rows, topology.graph)
    unknown = uncounted_rows(rows, topology)
    heads = _heads(part, intervals, elapsed_s, silent, unknown)
    if heads is not None:
        heads = _with_samples(
            heads, sampled_groups.of([rows.keys[position] for position in part.nvme_heads[silent[part.nvme_heads]]])
        )
    everything = disk_table(rows, intervals, topology, heads)
    if stalled_ms is not None:
        everything = everything.with_columns(
            {"stalled_ms": np.where(np.isnan(everything.columns["iops"]), np.nan, stalled_ms)}
        )
    disks = everything if part.disks is rows else everything.taken(part.disk_at, part.disks)

    def table(name: str, rows: Rows, group_of_row: NDArray[np.intp]) -> FrameTable:
        sums = group_sums(intervals, group_of_row, len(rows), elapsed_s, unknown)
        members = np.bincount(group_of_row[group_of_row >= 0], minlength=len(rows)).astype(np.float64)
        return _group_table(name, rows, sums, members, sampled_groups.of(rows.keys), host=topology.host)

    # Without a device graph nobody knows which rows are paths of others, whose I/Os would count twice.
    host = {"whole_host": table("whole_host", HOST_ROWS, host_of_row(rows, topology))} if topology.graph.luns else {}
    if not len(part.paths):
        return {"disks": disks, **host}
    ports = table("hbas", part.ports, part.port_of_row)
    limits = _limits(part.port_limits, ports.columns["in_flight"])
    return {
        "disks": disks,
        "paths": _path_table(everything.taken(part.path_at, part.paths), part),
        "hbas": ports.with_columns(limits),
        "target_ports": table("target_ports", part.targets, part.target_of_row),
        **host,
    }


def stalled_ms(table: Table) -> Values:
    """How long each row has had I/Os outstanding and completed none; NaN in sessions of earlier versions."""
    positions = [at for at, column in enumerate(table.schema.columns) if column.id == "stalled_ms"]
    if not positions:
        return np.full(len(table.rows), np.nan)
    values = table.values[:, positions[0]]
    return np.where(values == MISSING, np.nan, values.astype(np.float64))


def silent_rows(table: Table) -> NDArray[np.bool_]:
    """Rows whose kernel counters are all 0 or missing."""
    kernel = _kernel_columns(table.schema.columns)
    silent = np.zeros(len(table.rows), np.bool_)
    # Nearly every device was read when it was found, so that the first counter rules it out.
    first = table.values[:, kernel[0]]
    unread = np.flatnonzero((first == 0) | (first == MISSING))
    if len(unread):
        values = table.values[unread][:, kernel]
        silent[unread] = ((values == 0) | (values == MISSING)).all(axis=1)
    return silent


@functools.lru_cache
def _kernel_columns(columns: tuple[Column, ...]) -> list[int]:
    """Return the positions of the kernel's counters."""
    return [position for position, column in enumerate(columns) if column in DISKSTATS_COLUMNS]


def _heads(
    part: Roles,
    intervals: Sequence[DiskInterval],
    elapsed_s: float,
    silent: NDArray[np.bool_],
    unknown: NDArray[np.bool_],
) -> DiskInterval | None:
    """Add up the paths of NVMe heads for which the kernel does not count I/O; None if there is no such head."""
    heads = part.nvme_heads[silent[part.nvme_heads]]
    if not len(heads) or np.isnan(elapsed_s):
        return None
    group_of_lun = np.full(len(silent) + 1, -1, np.intp)
    group_of_lun[heads] = np.arange(len(heads))
    # A row without a LUN has position -1, the last element, which belongs to no group.
    group_of_row = group_of_lun[part.lun_of_row]
    sums = group_sums(intervals, group_of_row, len(heads), elapsed_s, unknown)
    if "outstanding_io_s" not in sums.interval.sums:
        return None
    overlapping = sums.most_busy_s - sums.interval.sums["busy_s"] > _SAME_BUSY * elapsed_s
    busy_s = np.where(overlapping, np.nan, sums.interval.sums["busy_s"])
    return DiskInterval(heads, {**sums.interval.sums, "busy_s": busy_s}, sums.interval.peaks)


def _path_table(figures: FrameTable, part: Roles) -> FrameTable:
    """Add each path's share of its LUN and of its queue limit."""
    ios = figures.columns["iops"]
    lun = part.lun_of_row[part.path_at]
    alone = lun < 0
    together = np.bincount(np.where(alone, 0, lun + 1), ios, minlength=1)
    share = 100.0 * ratio(ios, np.where(alone, ios, together[lun + 1]))
    columns = {field_id: values for field_id, values in figures.columns.items() if field_id not in OF_OTHERS}
    columns |= {"lun_share_pct": share} | _limits(part.path_limits, columns["in_flight"])
    return FrameTable(part.paths, columns, figures.tiers)


def _with_samples(interval: DiskInterval, sampled_groups: GroupSamples) -> DiskInterval:
    """Add busy, queue and service time from the in-flight samples of whole groups."""
    return DiskInterval(
        interval.at, with_group_samples(interval.sums, sampled_groups), np.fmax(interval.peaks, sampled_groups.peaks)
    )


def _group_table(
    name: str, rows: Rows, sums: GroupSums, members: Values, sampled_groups: GroupSamples, *, host: HostFacts
) -> FrameTable:
    """Make the table of groups of paths or disks, such as HBA ports."""
    count = len(rows)
    columns, tiers = when_idle(name, count)
    if "outstanding_io_s" in sums.interval.sums:
        none = np.zeros(count, np.bool_)
        interval = _with_samples(sums.interval, sampled_groups)
        unsplit, counted = none if splits_at_driver(host) else ~none, counts_queued(host)
        figures, tiers = figures_of(interval, none, unsplit, counts_queued=counted)
        columns |= {field_id: values for field_id, values in figures.items() if field_id in columns}
    elapsed_s = sums.interval.sums["elapsed_s"]
    low, high = (100.0 * ratio(busy_s, elapsed_s) for busy_s in (sums.interval.sums["busy_s"], sums.most_busy_s))
    is_sampled, one_figure = tiers["busy_pct"] == Tier.SAMPLED, high - low <= 100.0 * _SAME_BUSY
    columns["busy_pct"] = np.where(is_sampled, columns["busy_pct"], np.where(one_figure, low, np.nan))
    by_ticks = np.where(one_figure, np.uint8(Tier.KERNEL), np.uint8(Tier.NONE))
    tiers["busy_pct"] = np.where(is_sampled, np.uint8(Tier.SAMPLED), by_ticks)
    columns |= {"busy_low_pct": low, "busy_high_pct": high, "paths": members}
    return FrameTable(rows, columns, tiers)


def _limits(limits: Values, in_flight: Values) -> dict[str, Values]:
    return {"queue_limit": limits, "limit_pct": 100.0 * ratio(in_flight, limits)}
