"""Queue time, service time and busy time without privileges: sampled I/Os in flight and Little's law.

The kernel adds up the time of every I/O to the nanosecond. Samples of the I/Os in flight are less accurate: on a busy
host the sampler runs when other tasks have just gone to sleep, often to wait for I/O, so it may find a disk busy for
twice or half of the actual time. Two counts sampled at the same instants have the same bias. So samples are used only
to divide the kernel's own time, and where the two disagree a figure is left out.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.derive.counter_deltas import Values, present, ratio


class AtEnds(Struct, frozen=True, eq=False):
    """Outstanding I/Os at the begin and at the end of an interval, NaN where unknown."""

    begin: Values
    end: Values

    @property
    def held(self) -> Values:
        """Return the smaller of both: outstanding throughout if nothing completed."""
        return np.minimum(self.begin, self.end)


def outstanding_io_s(completed: Values, time_s: Values, at_ends: AtEnds, elapsed_s: float) -> Values:
    """Outstanding I/Os times seconds over an interval.

    By Little's law that is the time of the completed I/Os, if they are much shorter than the interval. I/Os that took
    longer than it were outstanding before it, too, and those that have not completed are missing: then it is the mean
    of those outstanding at both ends. If nothing completes, those at both ends were outstanding throughout: a stall. So
    were as many of those at the begin as are more than completed.

    Args:
        completed: I/Os that completed in the interval.
        time_s: their time from start to completion, summed.
        at_ends: I/Os outstanding at both ends.
        elapsed_s: length of the interval.
    """
    throughout = np.fmax(at_ends.begin - completed, 0.0) * elapsed_s
    outstanding = np.where(completed == 0, at_ends.held * elapsed_s, np.maximum(time_s, throughout))
    outlast = (completed > 0) & (time_s > completed * elapsed_s) & (at_ends.begin > 0) & (at_ends.end >= 0)
    return np.where(outlast, (at_ends.begin + at_ends.end) / 2 * elapsed_s, outstanding)


Mask = NDArray[np.bool_]

MIN_SAMPLES = 100
"""Fewest samples: with fewer the share that found an I/O is off by up to 10 percentage points."""

MIN_BUSY_SAMPLES = 30
"""Fewest samples that found an I/O: with fewer their mean is off by a fifth or more."""

QUEUE_NOISE_MS = 0.020
QUEUE_NOISE_SHARE = 0.20
"""A queue time of less than 20 us + 20 % of the await cannot be distinguished from none.

A request leaves the driver shortly before it is accounted as complete, so service time reads 4 to 21 % low and queue
time includes the difference. With these bounds no load that was measured to have no queue shows one.
"""

MIN_PAIRED_MS = 2.0
"""Summed I/O time below which the millisecond counters are too coarse (as for the await)."""

MIN_SERVICE_MS = 0.05
MIN_BUSY_MS = 0.1
"""Time per I/O below which samples give neither service time nor busy time.

A sample takes 10 to 40 us, in which a shorter I/O begins and ends; and the kernel's time lasts until an I/O is
accounted as complete, 5 to 20 us after the driver has completed it, longer if the waiting task runs first.
"""

_BUSY_BOUNDS = 1.1 / 0.9
"""Largest ratio of the bounds of busy time for which their harmonic mean is within 10 % of both."""
_SERVICE_BOUNDS = 1.2 / 0.8
"""The same for service time and 20 %."""
_AGREE = 1.25
"""Largest ratio of the sampled mean of I/Os in flight and the kernel's."""
_AGREE_WELL = 1.1
"""The same where the number in flight at once is a mean over samples."""
_AGREE_IN_RATIO = 2.0
"""The same where only the ratio of two counts of the same samples is used."""
_ALONE = 1.05
"""Mean I/Os in flight while there are any, up to which they are issued one at a time."""
_MOST_ERROR = 0.1 / 1.96
"""Standard error of a mean that is within 10 % of the true value in 19 of 20 intervals."""
_BATCH = 4.0
"""Successive I/Os where several are in flight: their samples are correlated."""
_NEARLY_ALWAYS = 0.95
"""Share of samples that found an I/O from which on the share itself is accurate enough."""
_MOST = 0.9
"""Share of the I/Os, and of their time, that samples must describe to be used for all of them.

Some of several intervals may lack samples: in a recording those before exact time was ready have them, others do not.
"""
_WHOLE = 0.99
"""Share of an interval that samples must cover to give its busy time."""


class _Samples(Struct, frozen=True, eq=False):
    """Both counts of I/Os in flight over the sampled time, and the kernel's own sum of it, as I/Os times seconds."""

    driver_io_s: Values
    driver_busy_s: Values
    accounted_io_s: Values
    accounted_busy_s: Values
    queued_io_s: Values
    kernel_io_s: Values
    agreement: Values
    """The kernel's mean number in flight divided by the sampled one."""
    await_ms: Values
    """Mean time of the I/Os that the samples describe."""
    error: Values
    """Standard error of the mean of the accounted ones while there are any, as a share of it."""
    has_both: Mask
    """Whether the accounted ones are known and the kernel's sum consists of exactly them."""
    enough: Mask


class SampledTimes(Struct, frozen=True, eq=False):
    """Times that only samples give, one value per disk; NaN where they do not give it."""

    queue_ms: Values
    """Mean queue time per I/O."""
    service_ms: Values
    """Mean service time per I/O."""
    busy_share: Values
    """Share of time with a request in the driver, 0 to 1, where it is known to within 10 %."""


def sampled_times(sums: Mapping[str, Values], unsplit: Mask, *, counts_queued: bool) -> SampledTimes:
    """Divide the kernel's time of the I/Os into queue and service time, and estimate busy time.

    Args:
        sums: those of collectors.derive.disk_interval.DiskInterval.
        unsplit: disks without a driver queue, or on a kernel that does not count it separately: they have neither
            queue nor service time.
        counts_queued: whether the kernel is known to account I/Os as in flight that are not in the driver yet.
    """
    found = np.full((3, len(unsplit)), np.nan)
    at = np.flatnonzero(sums["sample_count"] >= MIN_SAMPLES)  # The few disks that are watched, of thousands.
    if len(at):
        share = found[2, at] = _sampled_share(sums, at)
        # Of a disk without I/O the samples say all there is: it has no time to divide.
        is_working = (sums["paired_ios"][at] != 0) | ~(sums["paired_ms"][at] < MIN_PAIRED_MS)
        at, share = at[is_working], share[is_working]
    if len(at):
        working = {name: values[at] for name, values in sums.items()}
        with np.errstate(invalid="ignore"):
            samples = _samples(working, counts_queued=counts_queued)
            found[:2, at] = _queue_and_service_ms(working, samples, unsplit[at])
            found[2, at] = _busy_share(working, samples, share)
    return SampledTimes(*found)


def _sampled_share(sums: Mapping[str, Values], at: NDArray[np.intp]) -> Values:
    """Share of the samples with a request in the driver, NaN where they do not cover the interval."""
    sampled_s = sums["sampled_s"][at]
    share = np.minimum(1.0, ratio(sums["sampled_busy_s"][at], sampled_s))
    return np.where(sampled_s >= _WHOLE * sums["elapsed_s"][at], share, np.nan)


def _queue_and_service_ms(sums: Mapping[str, Values], samples: _Samples, unsplit: Mask) -> tuple[Values, Values]:
    """Mean queue and service time per I/O.

    Where both counts are known, service lies between the I/Os in the driver and the I/Os not queued for it, as shares
    of the kernel's time; it is left out where these bounds are too far apart. Else service = requests in the driver /
    completions per second, and queue is the rest of the await. Where the rest is within the noise, queue is 0 ("no
    queueing") and service is the whole await.
    """
    await_ms = samples.await_ms
    in_driver_ms = ratio(sums["paired_io_s"] * 1e3, sums["paired_ios"])
    low_ms = await_ms * np.minimum(1.0, ratio(samples.driver_io_s, samples.accounted_io_s))
    queued_ms = await_ms * ratio(samples.queued_io_s, samples.accounted_io_s)
    high_ms = np.maximum(low_ms, await_ms - queued_ms)
    within = samples.enough & (high_ms <= _SERVICE_BOUNDS * low_ms) & _near(samples.agreement, _AGREE_IN_RATIO)
    within &= await_ms >= MIN_SERVICE_MS
    valid = np.where(samples.has_both, within, sums["paired_sample_count"] >= MIN_BUSY_SAMPLES)
    valid &= ~unsplit & (sums["paired_ms"] >= MIN_PAIRED_MS) & _describe_most(sums)
    service_ms = np.where(samples.has_both, _between(low_ms, high_ms), in_driver_ms)
    queue_ms = np.where(samples.has_both, queued_ms, await_ms - in_driver_ms)
    noise = queue_ms <= QUEUE_NOISE_MS + QUEUE_NOISE_SHARE * await_ms
    service_ms = np.where(noise, service_ms + queue_ms, service_ms)
    return np.where(valid, np.where(noise, 0.0, queue_ms), np.nan), np.where(valid, service_ms, np.nan)


def _describe_most(sums: Mapping[str, Values]) -> Mask:
    """Whether the samples describe nearly all I/Os of the time that is asked for, and nearly all of their time."""
    ios = sums["reads"] + sums["writes"] + present(sums["discards"], sums["discards"])
    time_ms = sums["read_ms"] + sums["write_ms"]
    most: Mask = (sums["paired_ios"] >= _MOST * ios) & (sums["paired_ms"] >= _MOST * time_ms)
    return most


def _busy_share(sums: Mapping[str, Values], samples: _Samples, share: Values) -> Values:
    """Share of time with a request in the driver, 0 to 1; NaN where samples do not give it to within 10 %.

    The kernel's sum of I/Os in flight, divided by their mean number while there were any: exact for I/Os issued one at
    a time, whatever was sampled. An I/O in flight at an end of the interval may be a long one counted in another
    interval: there the samples must agree.

    Args:
        sums: sums defined in collectors.derive.inflight_samples.
        samples: the same as counts over the sampled time.
        share: result of `_sampled_share`.
    """
    at_once = ratio(samples.accounted_io_s, samples.accounted_busy_s)
    whole = samples.accounted_io_s * sums["paired_s"]
    low = ratio(samples.kernel_io_s * np.minimum(samples.driver_busy_s, samples.accounted_busy_s), whole)
    high = ratio(samples.kernel_io_s * samples.accounted_busy_s, whole)
    one_by_one = samples.has_both & (at_once <= _ALONE)
    alone = one_by_one & ((sums["paired_held_s"] == 0) | _near(samples.agreement, _AGREE))
    precise = alone | (_near(samples.agreement, _AGREE_WELL) & (samples.error <= _MOST_ERROR))
    within = samples.enough & precise & (samples.await_ms >= MIN_BUSY_MS) & (high <= _BUSY_BOUNDS * low)
    # More than the kernel's sum is impossible: the sampler was woken by the I/Os that it counted.
    nearly_always = (share >= _NEARLY_ALWAYS) & (samples.agreement >= 1.0 / _AGREE)
    # Where nothing completed, or only the kernel's time includes queued I/Os, it cannot confirm the samples.
    unjudged = (sums["paired_ios"] == 0) | (~samples.has_both & ~(samples.agreement < 1.0 / _AGREE))
    by_share = np.where(nearly_always | unjudged, share, np.nan)
    confirmed = within & ~nearly_always & ~np.isnan(share)
    return np.where(confirmed, np.minimum(1.0, _between(low, high)), by_share)


def _samples(sums: Mapping[str, Values], *, counts_queued: bool) -> _Samples:
    """Use the requests in the driver as all I/Os in flight where the kernel does not distinguish them."""
    kernel_io_s, accounted = sums["paired_ms"] / 1e3, sums["paired_accounted_io_s"]
    both = (accounted > 0) & (sums["paired_accounted_busy_s"] > 0)
    if not counts_queued:
        both &= (accounted >= 1.1 * sums["paired_io_s"]) | _near(ratio(kernel_io_s, accounted), _AGREE)
    sample_count = np.where(both, sums["paired_accounted_sample_count"], sums["paired_sample_count"])
    io_s = np.where(both, accounted, sums["paired_io_s"])
    busy_s = np.where(both, sums["paired_accounted_busy_s"], sums["paired_busy_s"])
    mean_square = ratio(sums["paired_accounted_squares_s"], busy_s)
    # Without squares the standard deviation of the number in flight is assumed to equal its mean.
    relative_variance = np.where(both, ratio(mean_square, ratio(io_s, busy_s) ** 2) - 1.0, 1.0)
    await_ms = ratio(sums["paired_ms"], sums["paired_ios"])
    # Samples of one batch of I/Os count as one: this is how many samples one batch spans.
    samples_per_batch = _BATCH * np.fmax(1.0, await_ms / 1e3 * ratio(sums["sample_count"], sums["sampled_s"]))
    return _Samples(
        driver_io_s=sums["paired_io_s"],
        driver_busy_s=sums["paired_busy_s"],
        accounted_io_s=io_s,
        accounted_busy_s=busy_s,
        queued_io_s=np.where(both, sums["paired_queued_io_s"], 0.0),
        kernel_io_s=kernel_io_s,
        agreement=ratio(kernel_io_s, io_s),
        await_ms=await_ms,
        error=np.sqrt(np.maximum(0.0, ratio(relative_variance * samples_per_batch, sample_count))),
        has_both=both,
        enough=(sample_count >= MIN_BUSY_SAMPLES) & (sums["paired_ms"] >= MIN_PAIRED_MS),
    )


def _near(value: Values, factor: float) -> Mask:
    near: Mask = (value >= 1.0 / factor) & (value <= factor)
    return near


def _between(low: Values, high: Values) -> Values:
    """Harmonic mean: at the same relative distance from both bounds."""
    return ratio(2.0 * low * high, low + high)
