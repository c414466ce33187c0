"""In-flight samples of whole ports and NVMe heads, as sums that are additive over intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from collectors.derive.counter_deltas import Values, aligned, column_deltas, positions
from collectors.derive.inflight_samples import ACCOUNTED, is_paired
from collectors.derive.queue_split import MIN_SAMPLES
from collectors.model import Rows, Table

_COVERED = 0.99
"""Share of an interval that samples must cover to represent it."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupSamples:
    """Sums by group key; `sums` maps to float64, one value per row of `rows`, 0 for groups that were not sampled.

    `sample_count`; `busy_sample_count`: samples with a request; `sampled_s`: time the samples represent; `busy_s`: of
    that, time with a request; `in_driver_io_s`: requests times seconds. `peaks`: the most requests in any sample, NaN
    for groups that were not sampled.
    """

    rows: Rows
    sums: Mapping[str, Values]
    peaks: Values

    def of(self, keys: Sequence[str]) -> GroupSamples:
        """Select groups by key, in that order."""
        at = positions(self.rows, keys)
        found = at >= 0
        sums = {name: np.where(found, values[at], 0.0) if len(values) else np.zeros(len(keys))
                for name, values in self.sums.items()}  # fmt: skip
        peaks = np.where(found, self.peaks[at], np.nan) if len(self.peaks) else np.full(len(keys), np.nan)
        return GroupSamples(Rows(tuple(keys), tuple(keys)), sums, peaks)


NO_GROUP_SAMPLES = GroupSamples(
    Rows((), ()),
    {name: np.zeros(0) for name in ("sample_count", "busy_sample_count", "sampled_s", "busy_s", "in_driver_io_s")},
    np.zeros(0),
)


def group_samples(previous: Table | None, current: Table | None, elapsed_s: float) -> GroupSamples:
    """Compute the sums of the interval between two GROUP tables; no rows if there is no interval."""
    if previous is None or current is None or np.isnan(elapsed_s):
        return NO_GROUP_SAMPLES
    deltas = column_deltas(current.schema.columns, aligned(previous, current), current.values)
    sample_count, total = deltas["driver_in_flight_samples"], deltas["driver_in_flight_sum"]
    busy = np.minimum(deltas["driver_busy_samples"], sample_count)
    is_sampled = (sample_count > 0) & ~np.isnan(busy + total)
    per_sample_s = np.where(is_sampled, elapsed_s / np.where(is_sampled, sample_count, 1.0), 0.0)
    sums = {
        "sample_count": np.where(is_sampled, sample_count, 0.0),
        "busy_sample_count": np.where(is_sampled, busy, 0.0),
        "sampled_s": np.where(is_sampled, elapsed_s, 0.0),
        "busy_s": np.where(is_sampled, busy * per_sample_s, 0.0),
        "in_driver_io_s": np.where(is_sampled, total * per_sample_s, 0.0),
    }
    return GroupSamples(current.rows, sums, np.where(is_sampled, deltas["driver_in_flight_peak"], np.nan))


def added_group_samples(one: GroupSamples, other: GroupSamples) -> GroupSamples:
    """Add up two intervals by key."""
    keys = tuple(dict.fromkeys((*one.rows.keys, *other.rows.keys)))
    first, second = one.of(keys), other.of(keys)
    sums = {name: values + second.sums[name] for name, values in first.sums.items()}
    return GroupSamples(Rows(keys, keys), sums, np.fmax(first.peaks, second.peaks))


def with_group_samples(sums: Mapping[str, Values], sampled_groups: GroupSamples) -> dict[str, Values]:
    """Use the samples of whole groups where they cover the interval; keep the sums of their members elsewhere.

    Args:
        sums: sums of the groups, defined in collectors.derive.disk_interval.
        sampled_groups: samples of the same groups in the same order.
    """
    group, elapsed_s = sampled_groups.sums, sums["elapsed_s"]
    covers = (group["sample_count"] >= MIN_SAMPLES) & (group["sampled_s"] >= _COVERED * elapsed_s)
    ios, time_ms = sums["reads"] + sums["writes"], sums["read_ms"] + sums["write_ms"]
    peak = np.fmax(sampled_groups.peaks, group["in_driver_io_s"] / elapsed_s)
    # The sums do not contain the time of discards, so intervals with discards cannot be paired.
    paired = covers & is_paired(ios, time_ms, peak, elapsed_s) & ~(sums["discards"] > 0)
    replaced = {
        "sample_count": group["sample_count"],
        "sampled_s": group["sampled_s"],
        "sampled_busy_s": group["busy_s"],
        "paired_sample_count": np.where(paired, group["busy_sample_count"], 0.0),
        "paired_s": np.where(paired, elapsed_s, 0.0),
        "paired_held_s": np.where(paired, elapsed_s, 0.0),
        "paired_busy_s": np.where(paired, group["busy_s"], 0.0),
        "paired_io_s": group["in_driver_io_s"],
        "paired_ios": ios,
        "paired_ms": time_ms,
        **dict.fromkeys(ACCOUNTED, np.zeros(len(ios))),
    }
    return {**sums, **{name: np.where(covers, values, sums[name]) for name, values in replaced.items()}}
