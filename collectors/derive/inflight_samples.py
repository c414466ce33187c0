"""In-flight samples of disks, whole ports and NVMe heads in an interval, paired with the kernel's counters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.derive.counter_deltas import Deltas, Values, aligned, column_deltas, positions, present
from collectors.derive.queue_split import MIN_SAMPLES
from collectors.model import Rows, Table

ACCOUNTED = (
    "paired_accounted_sample_count",
    "paired_accounted_io_s",
    "paired_accounted_busy_s",
    "paired_accounted_squares_s",
    "paired_queued_io_s",
)
"""Sums that exist for single disks only, not for groups."""

_SUMS = (
    "sample_count",
    "sampled_s",
    "sampled_busy_s",
    "paired_sample_count",
    "paired_s",
    "paired_held_s",
    "paired_busy_s",
    "paired_io_s",
    "paired_ios",
    "paired_ms",
    *ACCOUNTED,
)

_PEAK_FACTOR = 4.0
"""How far the outstanding I/Os by Little's law may exceed the most that any sample found.

By default the block layer admits twice what the driver takes (`blk_mq_init_sched`), so more than that means that I/Os
completed which had waited since long before the interval; their time must not count as queueing.
"""

_SHORT = 0.03
"""Share of an interval that an I/O in flight at one of its ends may account for without distorting the sums."""


def in_flight_sums(deltas: Deltas, in_flight: Values, unbroken_s: Values, elapsed_s: float) -> dict[str, Values]:
    """Sum up the samples of one interval; all 0 for disks not sampled, so that sums of any intervals are additive.

    - `sample_count`; `sampled_s`: time the samples represent; `sampled_busy_s`: of that, with a request in the driver
    - of intervals where samples and counters describe the same I/Os: `paired_sample_count`: samples with a request in
      the driver; `paired_s`: time they represent; `paired_held_s`: of that, intervals with an I/O in flight at one end
      that may be a long one, as its time is counted where it completes; `paired_busy_s`: with a request in the driver;
      `paired_io_s`: requests in the driver times seconds; `paired_ios` completed and `paired_ms`, their whole time
    - of the same samples, for I/Os that the kernel accounts as in flight: `paired_accounted_sample_count`: samples with
      any, `paired_accounted_busy_s`: time with any, `paired_accounted_io_s`: I/Os times seconds,
      `paired_accounted_squares_s`: their squares times seconds, `paired_queued_io_s`: I/Os times seconds that waited
      for a full driver

    Args:
        deltas: deltas of the disk columns.
        in_flight: the larger of the outstanding I/Os at both ends.
        unbroken_s: longest time an I/O in flight at one end may have been in flight; NaN if unknown.
        elapsed_s: length of the interval.
    """
    sample_count, total = deltas["driver_in_flight_samples"], deltas["driver_in_flight_sum"]
    at = np.flatnonzero((sample_count > 0) & ~np.isnan(deltas["driver_busy_samples"] + total))
    if not len(at):
        return dict.fromkeys(_SUMS, np.zeros(deltas.rows))
    if len(at) == deltas.rows:
        return dict(zip(_SUMS, _sums(deltas, in_flight, unbroken_s, elapsed_s), strict=True))
    # Few disks of thousands are sampled.
    sampled = Deltas(len(at), {column_id: values[at] for column_id, values in deltas.items()})
    sums = np.zeros((len(_SUMS), deltas.rows))
    sums[:, at] = _sums(sampled, in_flight[at], unbroken_s[at], elapsed_s)
    return dict(zip(_SUMS, sums, strict=True))


def _sums(deltas: Deltas, in_flight: Values, unbroken_s: Values, elapsed_s: float) -> list[Values]:
    """Sum up the samples of disks that were sampled, in the order of `_SUMS`."""
    sample_count, total = deltas["driver_in_flight_samples"], deltas["driver_in_flight_sum"]
    busy_sample_count = np.minimum(deltas["driver_busy_samples"], sample_count)
    per_sample_s = elapsed_s / sample_count
    ios, time_ms = _sampled_kinds(deltas)
    peak = np.fmax(np.fmax(deltas["driver_in_flight_peak"], in_flight), total / sample_count)
    paired = is_paired(ios, time_ms, peak, elapsed_s)
    with np.errstate(invalid="ignore"):
        short = unbroken_s <= _SHORT * elapsed_s
    weight_s = np.where(paired, per_sample_s, 0.0)
    return [
        sample_count,
        np.full(deltas.rows, elapsed_s),
        busy_sample_count * per_sample_s,
        np.where(paired, busy_sample_count, 0.0),
        np.where(paired, elapsed_s, 0.0),
        np.where(paired & ~(in_flight == 0) & ~short, elapsed_s, 0.0),
        busy_sample_count * weight_s,
        total * weight_s,
        np.where(paired, ios, 0.0),
        np.where(paired, time_ms, 0.0),
        *_accounted(deltas, paired, weight_s),
    ]


def _accounted(deltas: Deltas, paired: NDArray[np.bool_], weight_s: Values) -> list[Values]:
    sources = ("accounted_samples", "accounted_sum", "accounted_samples", "accounted_squares", "queued_sum")
    columns = np.array([deltas[f"driver_{source}"] for source in sources])
    known = paired & ~np.isnan(columns.sum(axis=0))
    columns[1:] *= weight_s
    return list(np.where(known, columns, 0.0))


def _sampled_kinds(deltas: Deltas) -> tuple[Values, Values]:
    """I/Os of the kinds that the sampler counts, and their time.

    `blk_mq_in_driver_rw` counts accounted requests by data direction: reads, writes and discards, no flushes.
    """
    discards = deltas["discards"]
    ios = deltas["reads"] + deltas["writes"] + present(discards, discards)
    return ios, deltas["read_ms"] + deltas["write_ms"] + present(discards, deltas["discard_ms"])


def is_paired(ios: Values, time_ms: Values, peak: Values, elapsed_s: Values | float) -> NDArray[np.bool_]:
    """Find the rows where samples and counters describe the same I/Os, as Little's law requires.

    Not where a mean I/O took over half the interval, or where stalled I/Os of earlier intervals completed: the counters
    of this interval contain their time, its samples do not.
    """
    time_s = time_ms / 1e3
    short = time_s <= ios * elapsed_s / 2.0
    return short & (time_s <= _PEAK_FACTOR * np.fmax(peak, 1.0) * elapsed_s)


_COVERED = 0.99
"""Share of an interval that samples must cover to represent it."""


class GroupSamples(Struct, frozen=True, eq=False):
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
    deltas = column_deltas(current.schema.columns, aligned(previous, current), current.values, elapsed_s=elapsed_s)
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
