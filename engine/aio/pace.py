"""Keeps the rate of a load under its limit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

_LOOK_S = 0.02
"""How long a waiting I/O sleeps before it looks for a new rate: well within the 50 ms of a knob turn."""
_SECOND_NS = 1_000_000_000


class Pace:
    """Hands out moments at which I/Os may start, one every 1/rate seconds over all targets."""

    def __init__(self, clock_ns: Callable[[], int]) -> None:
        self._clock_ns = clock_ns
        self._rate_iops: float | None = None
        self._next_ns = 0

    def set_rate(self, rate_iops: float | None) -> None:
        """Set the limit; those who wait for a moment of another rate take one of the new."""
        if rate_iops != self._rate_iops:
            self._rate_iops = rate_iops
            self._next_ns = self._clock_ns()

    async def take(self, wanted: Callable[[], bool]) -> bool:
        """Wait for the next free moment; False if the I/O is no longer wanted by then."""
        rate_iops, moment_ns = self._reserve()
        while (wait_s := (moment_ns - self._clock_ns()) / _SECOND_NS) > 0:
            await asyncio.sleep(min(wait_s, _LOOK_S))
            if not wanted():
                return False
            if rate_iops != self._rate_iops:
                rate_iops, moment_ns = self._reserve()
        return True

    def _reserve(self) -> tuple[float | None, int]:
        if self._rate_iops is None:
            return None, 0
        moment_ns = max(self._next_ns, self._clock_ns())
        self._next_ns = moment_ns + round(_SECOND_NS / self._rate_iops)
        return self._rate_iops, moment_ns
