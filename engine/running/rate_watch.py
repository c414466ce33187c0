"""Ends a load whose rate falls below the least that its job allows, as fio does (rate_min of fio(1))."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.job.rate_floor import RateFloor
from engine.running.counter_reader import IOS
from engine.text import three_digits

_SETTLE_S = 2.0
"""From the start, or the end of the ramp; as fio has it (check_min_rate in libfio)."""
_GAP_NS = 2_000_000_000
"""After so long without a poll the process, or the machine, was stopped: that is no rate of the load."""
_BYTES = [1, 5]
"""Positions in the raw table load, of reads and writes."""


class RateWatch:
    """Compares the counters with those of one cycle before."""

    def __init__(self, floor: RateFloor | None, ramp_s: float, block_bytes: int) -> None:
        """Watch over a floor; `block_bytes` is the largest I/O, one of which may be about to complete."""
        self._floor, self._settle_s = floor, ramp_s + _SETTLE_S
        self._under_way = block_bytes if floor is not None and floor.in_bytes else 1
        self._begun: tuple[int, int] | None = None
        """When the cycle began, and what was counted then."""
        self._observed_ns = 0

    def observe(self, counters: NDArray[np.uint64], now_ns: int, elapsed_s: float) -> str:
        """Take the counters; returns why the load must end, or nothing."""
        floor = self._floor
        if floor is None or elapsed_s < self._settle_s:
            return ""
        count = int(counters[:, _BYTES if floor.in_bytes else IOS].sum())
        was_stopped, self._observed_ns = now_ns - self._observed_ns > _GAP_NS, now_ns
        if self._begun is None or was_stopped:
            self._begun = now_ns, count
            return ""
        begun_ns, before = self._begun
        spent_s = (now_ns - begun_ns) / 1e9
        if spent_s < floor.cycle_s:
            return ""
        per_s = (count - before) / spent_s
        if per_s >= floor.per_s:
            self._begun = now_ns, count
            return ""
        if (count + self._under_way - before) / spent_s >= floor.per_s:
            # A cycle ends with an I/O, as in fio: slow loads have less than one in each.
            return ""
        found, least = floor.words(per_s), floor.words(floor.per_s)
        return f"{found} over the last {three_digits(spent_s)} s, below the {least} of --rate-min"
