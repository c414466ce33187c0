"""What the sampler saw of ports and NVMe heads as wholes, as sums that add up over intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from collectors.derive.counter_deltas import Values, aligned, growth, positions
from collectors.derive.inflight_samples import ACCOUNTED, is_paired
from collectors.derive.queue_split import MIN_SAMPLES
from collectors.model import Rows, Table

_COVERED = 0.99
"""Share of an interval that looks must cover to speak for it."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupSamples:
    """Sums by group key; `sums` maps to float64, one value per row of `rows`, 0 where nobody is_sampled.

    `looks`; `busy_sample_count` that saw a request; `sampled_s`: time they speak for; `busy_s`: of that with a request;
    `in_driver_io_s`: requests times seconds. `peaks`: the most requests seen at once, NaN where nobody is_sampled.
    """

    rows: Rows
    sums: Mapping[str, Values]
    peaks: Values

    def of(self, keys: Sequence[str]) -> GroupSamples:
        """Look up groups by key, in that order."""
        at = positions(self.rows, keys)
        found = at >= 0
        sums = {name: np.where(found, values[at], 0.0) if len(values) else np.zeros(len(keys))
                for name, values in self.sums.items()}  # fmt: skip
        peaks = np.where(found, self.peaks[at], np.nan) if len(self.peaks) else np.full(len(keys), np.nan)
        return GroupSamples(Rows(tuple(keys), tuple(keys)), sums, peaks)


NO_GROUP_SAMPLES = GroupSamples(
    Rows((), ()),
    {name: np.zeros(0) for name in ("looks", "busy_sample_count", "sampled_s", "busy_s", "in_driver_io_s")},
    np.zeros(0),
)


def group_samples(previous: Table | None, current: Table | None, elapsed_s: float) -> GroupSamples:
    """Reduce two GROUP tables to what was seen between them; nothing where there is no interval."""
    if previous is None or current is None or np.isnan(elapsed_s):
        return NO_GROUP_SAMPLES
    grown = growth(current.schema.columns, aligned(previous, current), current.values)
    looks, total = grown["driver_in_flight_samples"], grown["driver_in_flight_sum"]
    busy = np.minimum(grown["driver_busy_samples"], looks)
    is_sampled = (looks > 0) & ~np.isnan(busy + total)
    per_sample_s = np.where(is_sampled, elapsed_s / np.where(is_sampled, looks, 1.0), 0.0)
    sums = {
        "looks": np.where(is_sampled, looks, 0.0),
        "busy_sample_count": np.where(is_sampled, busy, 0.0),
        "sampled_s": np.where(is_sampled, elapsed_s, 0.0),
        "busy_s": np.where(is_sampled, busy * per_sample_s, 0.0),
        "in_driver_io_s": np.where(is_sampled, total * per_sample_s, 0.0),
    }
    return GroupSamples(current.rows, sums, np.where(is_sampled, grown["driver_in_flight_peak"], np.nan))


def added_group_samples(one: GroupSamples, other: GroupSamples) -> GroupSamples:
    """Put two intervals together, by key."""
    keys = tuple(dict.fromkeys((*one.rows.keys, *other.rows.keys)))
    first, second = one.of(keys), other.of(keys)
    sums = {name: values + second.sums[name] for name, values in first.sums.items()}
    return GroupSamples(Rows(keys, keys), sums, np.fmax(first.peaks, second.peaks))


def with_group_samples(sums: Mapping[str, Values], looks: GroupSamples) -> dict[str, Values]:
    """Let looks at whole groups speak where they cover the interval, and leave the sums of their members elsewhere.

    Args:
        sums: of the groups, as collectors.derive.disk_interval says.
        looks: of the same groups in the same order.
    """
    seen, elapsed_s = looks.sums, sums["elapsed_s"]
    covers = (seen["looks"] >= MIN_SAMPLES) & (seen["sampled_s"] >= _COVERED * elapsed_s)
    ios, time_ms = sums["reads"] + sums["writes"], sums["read_ms"] + sums["write_ms"]
    most_seen = np.fmax(looks.peaks, seen["in_driver_io_s"] / elapsed_s)
    # The time of discards is not among the sums, so that nothing can be paired where there were any.
    paired = covers & is_paired(ios, time_ms, most_seen, elapsed_s) & ~(sums["discards"] > 0)
    replaced = {
        "looks": seen["looks"],
        "sampled_s": seen["sampled_s"],
        "sampled_busy_s": seen["busy_s"],
        "paired_sample_count": np.where(paired, seen["busy_sample_count"], 0.0),
        "paired_s": np.where(paired, elapsed_s, 0.0),
        "paired_held_s": np.where(paired, elapsed_s, 0.0),
        "paired_busy_s": np.where(paired, seen["busy_s"], 0.0),
        "paired_io_s": seen["in_driver_io_s"],
        "paired_ios": ios,
        "paired_ms": time_ms,
        **dict.fromkeys(ACCOUNTED, np.zeros(len(ios))),
    }
    return {**sums, **{name: np.where(covers, values, sums[name]) for name, values in replaced.items()}}
