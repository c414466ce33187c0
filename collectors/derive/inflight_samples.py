"""What the in-flight sampler saw of each disk in an interval, paired with the kernel's counters."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from collectors.derive.counter_deltas import Grown, Values, present

ACCOUNTED = (
    "paired_accounted_sample_count",
    "paired_accounted_io_s",
    "paired_accounted_busy_s",
    "paired_accounted_squares_s",
    "paired_queued_io_s",
)
"""Sums that only looks at single disks have."""

_SUMS = (
    "looks",
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

_SEEN_FACTOR = 4.0
"""How far the outstanding I/Os by Little's law may exceed the most that anyone saw.

By default the block layer admits twice what the driver takes (`blk_mq_init_sched`), so more than that means that the
interval ended I/Os which had waited long before it, and their time must not be taken for queueing.
"""

_SHORT = 0.03
"""Share of an interval that an I/O in flight at an end may have taken of it without being missed."""


def in_flight_sums(grown: Grown, in_flight: Values, unbroken_s: Values, elapsed_s: float) -> dict[str, Values]:
    """Sum up the sampler over one interval; all 0 where it did not look, so that sums of any intervals add up.

    - `looks`; `sampled_s`: time it is_sampled over; `sampled_busy_s`: of that, with a request in the driver
    - of the intervals where looks and counters describe the same I/Os: `paired_sample_count` that saw a request in the
      driver; `paired_s`: time they speak for; `paired_held_s`: of that, intervals with an I/O in flight at an end that
      may be a long one, as its time is counted where it completes; `paired_busy_s`: with a request in the driver;
      `paired_io_s`: requests in the driver times seconds; `paired_ios` completed and `paired_ms`, their whole time
    - of the same looks at I/Os that the kernel accounts as in flight: `paired_accounted_sample_count` that saw one,
      `paired_accounted_busy_s` with one, `paired_accounted_io_s`: I/Os times seconds, `paired_accounted_squares_s`:
      their squares times seconds, `paired_queued_io_s`: I/Os times seconds that waited for a full driver

    Args:
        grown: growth of the disk columns.
        in_flight: the larger of the outstanding I/Os at both ends.
        unbroken_s: for how long at most an I/O that was in flight at an end may have been so; NaN if that is not known.
        elapsed_s: length of the interval.
    """
    looks, total = grown["driver_in_flight_samples"], grown["driver_in_flight_sum"]
    busy_sample_count = np.minimum(grown["driver_busy_samples"], looks)
    is_sampled = (looks > 0) & ~np.isnan(busy_sample_count + total)
    if not is_sampled.any():
        return dict.fromkeys(_SUMS, np.zeros(grown.rows))
    ios, time_ms = _sampled_kinds(grown)
    per_sample_s = elapsed_s / np.where(is_sampled, looks, 1.0)
    seen = np.fmax(np.fmax(grown["driver_in_flight_peak"], in_flight), total * per_sample_s / elapsed_s)
    paired = is_sampled & is_paired(ios, time_ms, seen, elapsed_s)
    with np.errstate(invalid="ignore"):
        short = unbroken_s <= _SHORT * elapsed_s
    weight_s = np.where(paired, per_sample_s, 0.0)
    return {
        "looks": np.where(is_sampled, looks, 0.0),
        "sampled_s": np.where(is_sampled, elapsed_s, 0.0),
        "sampled_busy_s": np.where(is_sampled, busy_sample_count * per_sample_s, 0.0),
        "paired_sample_count": np.where(paired, busy_sample_count, 0.0),
        "paired_s": np.where(paired, elapsed_s, 0.0),
        "paired_held_s": np.where(paired & ~(in_flight == 0) & ~short, elapsed_s, 0.0),
        "paired_busy_s": np.where(paired, busy_sample_count * weight_s, 0.0),
        "paired_io_s": np.where(paired, total * weight_s, 0.0),
        "paired_ios": np.where(paired, ios, 0.0),
        "paired_ms": np.where(paired, time_ms, 0.0),
    } | _accounted(grown, paired, weight_s)


def _accounted(grown: Grown, paired: NDArray[np.bool_], weight_s: Values) -> dict[str, Values]:
    sources = ("accounted_samples", "accounted_sum", "accounted_samples", "accounted_squares", "queued_sum")
    columns = [grown[f"driver_{source}"] for source in sources]
    known = paired & ~np.isnan(np.sum(columns, axis=0))
    weights = [np.ones(grown.rows), *[weight_s] * (len(columns) - 1)]
    return {
        name: np.where(known, column * weight, 0.0)
        for name, column, weight in zip(ACCOUNTED, columns, weights, strict=True)
    }


def _sampled_kinds(grown: Grown) -> tuple[Values, Values]:
    """I/Os of the kinds that the sampler sees, and their time.

    `blk_mq_in_driver_rw` counts accounted requests by data direction: reads, writes and discards, no flushes.
    """
    discards = grown["discards"]
    ios = grown["reads"] + grown["writes"] + present(discards, discards)
    return ios, grown["read_ms"] + grown["write_ms"] + present(discards, grown["discard_ms"])


def is_paired(ios: Values, time_ms: Values, seen: Values, elapsed_s: Values | float) -> NDArray[np.bool_]:
    """Tell where looks and counters describe the same I/Os, as Little's law needs.

    Not where a mean I/O took over half the interval, or where stalled I/Os of earlier intervals completed: their time
    is in the counters of this one, and nobody saw them waiting in it.
    """
    time_s = time_ms / 1e3
    short = time_s <= ios * elapsed_s / 2.0
    return short & (time_s <= _SEEN_FACTOR * np.fmax(seen, 1.0) * elapsed_s)
