"""The disk table into three: whole disks, their paths, and the HBA ports that carry these."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collectors.derive.counter_deltas import Values, ratio
from collectors.derive.disk_interval import DiskInterval
from collectors.derive.group_inflight import NO_GROUP_SAMPLES, GroupSamples, with_group_samples
from collectors.derive.queue_split import sampled_busy_share
from collectors.derive.roles import Places, Roles, roles
from collectors.model import MISSING, FrameTable, HostFacts, Rows, Table, Tier, Topology
from collectors.tables.block.derive.disk_figures import (
    counts_queued,
    disk_table,
    figures_of,
    splits_at_driver,
    uncounted_rows,
    when_idle,
)
from collectors.tables.block.schema import DISKSTATS_COLUMNS

_NOT_ADDED = frozenset({"elapsed_s", "sampled_s", "sampled_busy_s", "busy_s"})
"""Of the sums of one disk those that do not add up over several: time passes once for all of them."""

_SPOKEN_FOR = 0.9
"""Share of a group's I/Os that the in-flight sampler must have seen to speak for the queue time of all."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupSums:
    """What groups of rows did together; one row of an unknown amount makes its whole group unknown.

    `interval` has the sums of collectors.derive.disk_interval. Busy times of several rows may overlap, so the truth is
    between that of the busiest row, which is its `busy_s`, and `most_busy_s`.
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
        intervals: what rows did; those in none of them were idle.
        group_of_row: group of each row, -1 for none.
        groups: how many there are.
        elapsed_s: length of the interval.
        unknown_rows: rows whose counters stand still under load; their groups are unknown.
    """
    sums: dict[str, Values] = {}
    least_s, total_s = np.zeros(groups), np.zeros(groups)
    for interval in intervals:
        group = group_of_row[interval.at]
        ours = group >= 0
        group = group[ours]
        for quantity, values in interval.sums.items():
            if quantity not in _NOT_ADDED:
                added = np.bincount(group, values[ours], minlength=groups).astype(np.float64)
                sums[quantity] = added if quantity not in sums else sums[quantity] + added
        busy_s = interval.sums["busy_s"][ours]
        with np.errstate(invalid="ignore"):
            np.maximum.at(least_s, group, busy_s)
        total_s += np.bincount(group, busy_s, minlength=groups)
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
"""Share of the interval within which least and most busy time are one figure."""


def block_tables(
    rows: Rows,
    intervals: Sequence[DiskInterval],
    topology: Topology,
    elapsed_s: float,
    silent: NDArray[np.bool_],
    *,
    looks: GroupSamples = NO_GROUP_SAMPLES,
) -> dict[str, FrameTable]:
    """Frame tables "disks", without heat, and where the graph knows paths, "paths" and "hbas".

    Args:
        rows: of the disk table.
        intervals: what those that moved did, each row in one of them.
        topology: whose graph says what the rows are.
        elapsed_s: length of the interval.
        silent: rows that have never counted anything; an NVMe head among them shows what its paths did.
        looks: what the in-flight sampler saw of ports and NVMe heads as wholes.
    """
    part = roles(rows, topology.graph)
    unknown = uncounted_rows(rows, topology)
    heads = _heads(part, intervals, elapsed_s, silent, unknown)
    if heads is not None:
        heads = _looked_at(heads, looks.of([rows.keys[place] for place in part.nvme_heads[silent[part.nvme_heads]]]))
    everything = disk_table(rows, intervals, topology, heads)
    disks = everything if part.disks is rows else _taken(everything, part.disks, part.disk_at)
    if not len(part.paths):
        return {"disks": disks}
    sums = group_sums(intervals, part.port_of_row, len(part.ports), elapsed_s, unknown)
    return {
        "disks": disks,
        "paths": _path_table(_taken(everything, part.paths, part.path_at), part),
        "hbas": _port_table(sums, part, looks.of(part.ports.keys), host=topology.host),
    }


def silent_rows(table: Table) -> NDArray[np.bool_]:
    """Rows whose kernel counters are all 0 or missing."""
    kernel = [place for place, column in enumerate(table.schema.columns) if column in DISKSTATS_COLUMNS]
    values = table.values[:, kernel]
    silent: NDArray[np.bool_] = ((values == 0) | (values == MISSING)).all(axis=1)
    return silent


def _heads(
    part: Roles,
    intervals: Sequence[DiskInterval],
    elapsed_s: float,
    silent: NDArray[np.bool_],
    unknown: NDArray[np.bool_],
) -> DiskInterval | None:
    """Add up the paths of NVMe heads that the kernel does not count for; None where there is no such head."""
    heads = part.nvme_heads[silent[part.nvme_heads]]
    if not len(heads) or np.isnan(elapsed_s):
        return None
    group_of_lun = np.full(len(silent) + 1, -1, np.intp)
    group_of_lun[heads] = np.arange(len(heads))
    # A row without a LUN has place -1, which is the last one and belongs to no group.
    group_of_row = group_of_lun[part.lun_of_row]
    sums = group_sums(intervals, group_of_row, len(heads), elapsed_s, unknown)
    if "outstanding_io_s" not in sums.interval.sums:
        return None
    overlapping = sums.most_busy_s - sums.interval.sums["busy_s"] > _SAME_BUSY * elapsed_s
    busy_s = np.where(overlapping, np.nan, sums.interval.sums["busy_s"])
    return DiskInterval(heads, {**sums.interval.sums, "busy_s": busy_s}, sums.interval.peaks)


def _taken(table: FrameTable, rows: Rows, at: Places) -> FrameTable:
    """Return some rows of a table."""
    columns = {field_id: values[at] for field_id, values in table.columns.items()}
    return FrameTable(rows, columns, {field_id: codes[at] for field_id, codes in table.tiers.items()})


def _path_table(figures: FrameTable, part: Roles) -> FrameTable:
    """Add what a path is of its LUN, and how near its limit."""
    ios = figures.columns["iops"]
    lun = part.lun_of_row[part.path_at]
    alone = lun < 0
    together = np.bincount(np.where(alone, 0, lun + 1), ios, minlength=1)
    share = 100.0 * ratio(ios, np.where(alone, ios, together[lun + 1]))
    columns = {field_id: values for field_id, values in figures.columns.items() if field_id != "heat"}
    columns |= {"lun_share_pct": share} | _limits(part.path_limits, columns["in_flight"])
    return FrameTable(part.paths, columns, figures.tiers)


def _looked_at(interval: DiskInterval, looks: GroupSamples) -> DiskInterval:
    """Add what looks at whole groups say of busy time, queue and service."""
    return DiskInterval(interval.at, with_group_samples(interval.sums, looks), np.fmax(interval.peaks, looks.peaks))


def _port_table(sums: GroupSums, part: Roles, looks: GroupSamples, *, host: HostFacts) -> FrameTable:
    count = len(part.ports)
    columns, tiers = when_idle("hbas", count)
    looked_busy_pct = np.full(count, np.nan)
    if "outstanding_io_s" in sums.interval.sums:
        none = np.zeros(count, np.bool_)
        interval = _looked_at(sums.interval, looks)
        unsplit, counted = none if splits_at_driver(host) else ~none, counts_queued(host)
        figures, tiers = figures_of(interval, none, unsplit, counts_queued=counted)
        columns |= {field_id: values for field_id, values in figures.items() if field_id in columns}
        looked_busy_pct = 100.0 * sampled_busy_share(interval.sums, counts_queued=counted)
    elapsed_s = sums.interval.sums["elapsed_s"]
    low, high = (100.0 * ratio(busy_s, elapsed_s) for busy_s in (sums.interval.sums["busy_s"], sums.most_busy_s))
    looked, one_figure = ~np.isnan(looked_busy_pct), high - low <= 100.0 * _SAME_BUSY
    columns["busy_pct"] = np.where(looked, looked_busy_pct, np.where(one_figure, low, np.nan))
    by_ticks = np.where(one_figure, np.uint8(Tier.KERNEL), np.uint8(Tier.NONE))
    tiers["busy_pct"] = np.where(looked, np.uint8(Tier.SAMPLED), by_ticks)
    paths = np.bincount(part.port_of_row[part.port_of_row >= 0], minlength=count).astype(np.float64)
    columns |= {"busy_low_pct": low, "busy_high_pct": high, "paths": paths}
    return FrameTable(part.ports, columns | _limits(part.port_limits, columns["in_flight"]), tiers)


def _limits(limits: Values, in_flight: Values) -> dict[str, Values]:
    return {"queue_limit": limits, "limit_pct": 100.0 * ratio(in_flight, limits)}
