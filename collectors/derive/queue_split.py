"""Queue time apart from service time, and busy time, without privileges: sampled I/Os in flight by Little's law.

The kernel adds up the time of every I/O itself, to the nanosecond. Samples of what is in flight are worse than that:
where processors are short, the sampler runs when others have just gone to sleep, which is when they wait for I/O, and
so it may see a disk busy for twice or half of the time. What it saw of two counts at the same instants is biased alike.
So samples only share out the kernel's own time, and where the two disagree a figure is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collectors.derive.counter_deltas import Values, ratio

Mask = NDArray[np.bool_]

MIN_SAMPLES = 100
"""Looks below which their share that saw an I/O means little: it is then off by up to 10 points."""

MIN_BUSY_SAMPLES = 30
"""Looks that saw an I/O below which their mean is noise: it is then off by up to a fifth and more."""

QUEUE_NOISE_MS = 0.020
QUEUE_NOISE_SHARE = 0.20
"""A queue time of less than 20 us + 20 % of the await cannot be told from none.

A request leaves the driver a little before it is accounted as complete, so service reads 4 to 21 % low and the queue
takes the difference. With these bounds no load that was measured to have no queue shows one.
"""

MIN_PAIRED_MS = 2.0
"""Summed I/O time below which the millisecond counters say nothing (as for the await)."""

MIN_SERVICE_MS = 0.05
MIN_BUSY_MS = 0.1
"""Time per I/O below which neither service nor busy time is told by samples.

A sample takes 10 to 40 us, in which a shorter I/O begins and ends; and the kernel adds up the time until an I/O is
accounted as complete, which is 5 to 20 us after the driver has completed it, more where whoever waits runs first.
"""

_BUSY_BOUNDS = 1.1 / 0.9
"""How far the bounds of busy time may lie apart so that their harmonic mean is within 10 % of both."""
_SERVICE_BOUNDS = 1.2 / 0.8
"""The same for service time and 20 %."""
_AGREE = 1.25
"""How far the sampled and the kernel's mean of I/Os in flight may lie apart."""
_AGREE_WELL = 1.1
"""The same where how many there are at once is a mean over samples."""
_AGREE_IN_RATIO = 2.0
"""The same where only the ratio of two counts of the same samples is used."""
_ALONE = 1.05
"""Mean I/Os in flight while there are any, up to which they come one at a time."""
_MOST_ERROR = 0.1 / 1.96
"""Standard error of a mean that is within 10 % of the truth in 19 of 20 intervals."""
_BUNCH = 4.0
"""I/Os that come one after the other where several are in flight: their samples tell the same."""
_NEARLY_ALWAYS = 0.95
"""Share of samples that saw an I/O from which on their share itself is near enough."""
_WHOLE = 0.99
"""Share of an interval that looks must cover to speak for its busy time."""


@dataclass(frozen=True, slots=True, eq=False)
class _Samples:
    """Both counts of I/Os in flight over the sampled time, and the kernel's own sum of it, as I/Os times seconds."""

    driver_io_s: Values
    driver_busy_s: Values
    accounted_io_s: Values
    accounted_busy_s: Values
    queued_io_s: Values
    kernel_io_s: Values
    error: Values
    """Standard error of the mean of the accounted ones while there are any, as a share of it."""
    has_both: Mask
    """Whether the accounted ones are known and are all that the kernel's sum is made of."""
    enough: Mask

    @property
    def agreement(self) -> Values:
        """The kernel's mean over the sampled one."""
        return ratio(self.kernel_io_s, self.accounted_io_s)


def queue_split(sums: Mapping[str, Values], unsplit: Mask, *, counts_queued: bool) -> dict[str, Values]:
    """Mean queue and service time per I/O: `queue_ms`, `service_ms`.

    Where both counts are known, service is between what was in the driver and what was not queued for it, as shares of
    the kernel's time; it is left out where these lie too far apart. Else service = requests in the driver / completions
    per second, and the queue has the rest of the await. Where the rest is within the noise the queue is 0 ("no
    queueing") and service has all.

    Args:
        sums: as collectors.derive.inflight_samples says.
        unsplit: disks without a driver queue, or on a kernel that does not tell it apart: they have neither time.
        counts_queued: whether the kernel is known to account I/Os as in flight that are not in the driver yet.
    """
    samples = _samples(sums, counts_queued=counts_queued)
    is_sampled = (sums["looks"] >= MIN_SAMPLES) & ~unsplit & (sums["paired_ms"] >= MIN_PAIRED_MS)
    await_ms = ratio(sums["paired_ms"], sums["paired_ios"])
    in_driver_ms = ratio(sums["paired_io_s"] * 1e3, sums["paired_ios"])
    low_ms = await_ms * np.minimum(1.0, ratio(samples.driver_io_s, samples.accounted_io_s))
    queued_ms = await_ms * ratio(samples.queued_io_s, samples.accounted_io_s)
    high_ms = np.maximum(low_ms, await_ms - queued_ms)
    within = samples.enough & (high_ms <= _SERVICE_BOUNDS * low_ms) & _near(samples.agreement, _AGREE_IN_RATIO)
    within &= await_ms >= MIN_SERVICE_MS
    valid = is_sampled & np.where(samples.has_both, within, sums["paired_sample_count"] >= MIN_BUSY_SAMPLES)
    service_ms = np.where(samples.has_both, _between(low_ms, high_ms), in_driver_ms)
    queue_ms = np.where(samples.has_both, queued_ms, await_ms - in_driver_ms)
    with np.errstate(invalid="ignore"):
        noise = queue_ms <= QUEUE_NOISE_MS + QUEUE_NOISE_SHARE * await_ms
    figures = {
        "queue_ms": np.where(noise, 0.0, queue_ms),
        "service_ms": np.where(noise, service_ms + queue_ms, service_ms),
    }
    return {name: np.where(valid, values, np.nan) for name, values in figures.items()}


def sampled_busy_share(sums: Mapping[str, Values], *, counts_queued: bool) -> Values:
    """Share of time with a request in the driver, 0 to 1; NaN where samples do not tell it to within 10 %.

    The kernel's sum of I/Os in flight, divided by how many there were at once while there were any: exact for I/Os that
    come one at a time, whatever the sampler saw. An I/O in flight at an end of the interval may be a long one, whose
    time is in another interval: there the samples must agree.
    """
    samples = _samples(sums, counts_queued=counts_queued)
    covers = (sums["looks"] >= MIN_SAMPLES) & (sums["sampled_s"] >= _WHOLE * sums["elapsed_s"])
    share = np.minimum(1.0, ratio(sums["sampled_busy_s"], sums["sampled_s"]))
    at_once = ratio(samples.accounted_io_s, samples.accounted_busy_s)
    low = ratio(samples.kernel_io_s * np.minimum(samples.driver_busy_s, samples.accounted_busy_s),
                samples.accounted_io_s * sums["paired_s"])  # fmt: skip
    high = ratio(samples.kernel_io_s * samples.accounted_busy_s, samples.accounted_io_s * sums["paired_s"])
    with np.errstate(invalid="ignore"):
        one_by_one = samples.has_both & (at_once <= _ALONE)
        alone = one_by_one & ((sums["paired_held_s"] == 0) | _near(samples.agreement, _AGREE))
        precise = alone | (_near(samples.agreement, _AGREE_WELL) & (samples.error <= _MOST_ERROR))
        long_enough = ratio(sums["paired_ms"], sums["paired_ios"]) >= MIN_BUSY_MS
        within = samples.enough & precise & long_enough & (high <= _BUSY_BOUNDS * low)
        # More than the kernel has cannot be: the sampler was woken by the I/Os that it saw.
        nearly_always = (share >= _NEARLY_ALWAYS) & (samples.agreement >= 1.0 / _AGREE)
        # Where nothing completed, or queued I/Os are in the kernel's time alone, it cannot judge the samples.
        unjudged = (sums["paired_ios"] == 0) | (~samples.has_both & ~(samples.agreement < 1.0 / _AGREE))
        by_share = nearly_always | unjudged
    found = np.where(within & ~nearly_always, np.minimum(1.0, _between(low, high)), np.where(by_share, share, np.nan))
    return np.where(covers, found, np.nan)


def _samples(sums: Mapping[str, Values], *, counts_queued: bool) -> _Samples:
    """Take the requests in the driver for all that are in flight where the kernel does not tell them apart."""
    kernel_io_s, accounted = sums["paired_ms"] / 1e3, sums["paired_accounted_io_s"]
    there = (accounted > 0) & (sums["paired_accounted_busy_s"] > 0)
    told_apart = (accounted >= 1.1 * sums["paired_io_s"]) | _near(ratio(kernel_io_s, accounted), _AGREE)
    both = there & (np.full(len(there), counts_queued) | told_apart)
    looks = np.where(both, sums["paired_accounted_sample_count"], sums["paired_sample_count"])
    io_s = np.where(both, accounted, sums["paired_io_s"])
    busy_s = np.where(both, sums["paired_accounted_busy_s"], sums["paired_busy_s"])
    mean_square = ratio(sums["paired_accounted_squares_s"], busy_s)
    # Without squares as many at once are assumed to vary as much as they are.
    relative_variance = np.where(both, ratio(mean_square, ratio(io_s, busy_s) ** 2) - 1.0, 1.0)
    # Samples of one bunch of I/Os are one: this is how many see it.
    samples_per_bunch = _BUNCH * np.fmax(
        1.0, ratio(kernel_io_s, sums["paired_ios"]) * ratio(sums["looks"], sums["sampled_s"])
    )
    return _Samples(
        driver_io_s=sums["paired_io_s"],
        driver_busy_s=sums["paired_busy_s"],
        accounted_io_s=io_s,
        accounted_busy_s=busy_s,
        queued_io_s=np.where(both, sums["paired_queued_io_s"], 0.0),
        kernel_io_s=kernel_io_s,
        error=np.sqrt(np.maximum(0.0, ratio(relative_variance * samples_per_bunch, looks))),
        has_both=both,
        enough=(looks >= MIN_BUSY_SAMPLES) & (sums["paired_ms"] >= MIN_PAIRED_MS),
    )


def _near(value: Values, factor: float) -> Mask:
    with np.errstate(invalid="ignore"):
        near: Mask = (value >= 1.0 / factor) & (value <= factor)
    return near


def _between(low: Values, high: Values) -> Values:
    """Harmonic mean: as far from the one as from the other, as a share of either."""
    return ratio(2.0 * low * high, low + high)
