"""Queue time apart from service time without privileges: Little's law on sampled requests in the driver."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from collectors.derive.growth import Values, ratio

MIN_LOOKS = 100
"""Looks below which their share that saw an I/O means little: it is then off by up to 10 points."""

MIN_BUSY_LOOKS = 30
"""Looks that saw an I/O below which their mean is noise: it is then off by up to a fifth and more."""

QUEUE_NOISE_MS = 0.020
QUEUE_NOISE_SHARE = 0.20
"""A queue time of less than 20 us + 20 % of the await cannot be told from none.

A request leaves the driver a little before it is accounted as complete, so service reads 4 to 21 % low and the queue
takes the difference. With these bounds no load that was measured to have no queue shows one.
"""

MIN_PAIRED_MS = 2.0
"""Summed I/O time below which the millisecond counters say nothing (as for the await)."""

_WHOLE = 0.99
"""Share of an interval that looks must cover to speak for its busy time."""


def queue_split(sums: Mapping[str, Values], unsplit: NDArray[np.bool_]) -> dict[str, Values]:
    """Mean queue and service time per I/O: `queue_ms`, `service_ms`; together they are the await of what was sampled.

    Service = requests in the driver / completions per second; the queue has the rest of the await. Where the rest is
    within the noise the queue is 0 ("no queueing") and service is the whole await. NaN where the sampler saw too
    little, and for `unsplit` disks: without a driver queue, or on a kernel that does not tell it apart.
    """
    enough = (sums["looks"] >= MIN_LOOKS) & (sums["paired_looks"] >= MIN_BUSY_LOOKS) & ~unsplit
    enough &= sums["paired_ms"] >= MIN_PAIRED_MS
    await_ms = np.where(enough, ratio(sums["paired_ms"], sums["paired_ios"]), np.nan)
    in_driver_ms = ratio(sums["paired_io_s"] * 1e3, sums["paired_ios"])
    queue_ms = await_ms - in_driver_ms
    with np.errstate(invalid="ignore"):
        queue_ms = np.where(queue_ms <= QUEUE_NOISE_MS + QUEUE_NOISE_SHARE * await_ms, 0.0, queue_ms)
    return {"queue_ms": queue_ms, "service_ms": await_ms - queue_ms}


def busy_by_looks(sums: Mapping[str, Values]) -> Values:
    """Share of looks that saw a request, 0 to 1; NaN where there were too few or they cover only part of the time."""
    covers = (sums["looks"] >= MIN_LOOKS) & (sums["looked_s"] >= _WHOLE * sums["elapsed_s"])
    return np.where(covers, np.minimum(1.0, ratio(sums["looked_busy_s"], sums["looked_s"])), np.nan)
