"""Sampling times that all hosts of a fleet share: whole intervals on the controller's clock."""

from __future__ import annotations

import threading

from collectors.sampling.schedule import SECOND_NS, SystemClock

_SHARE = 0.5
"""A sample that would come sooner than this share of the interval after the one before is left out."""


class GridClock(SystemClock):
    """The clock of a live source whose samples fall on the grid of the controller.

    Until `set_phase` was called they fall wherever the source began.
    """

    def __init__(self, interval_s: float) -> None:
        self._interval_ns = round(interval_s * SECOND_NS)
        self._phase_ns: int | None = None

    def set_phase(self, phase_ns: int) -> None:
        """Sample when this host's CLOCK_MONOTONIC is `phase_ns` beyond a whole number of intervals."""
        self._phase_ns = phase_ns % self._interval_ns

    def lateness_ns(self, monotonic_ns: int) -> int:
        """How long after the last time of the grid a sample was taken."""
        return 0 if self._phase_ns is None else (monotonic_ns - self._phase_ns) % self._interval_ns

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        """Wait for the next time of the grid; whether `stop` was set or a sample asked for."""
        now_ns, phase_ns = self.monotonic_ns(), self._phase_ns
        if phase_ns is not None:
            earliest_ns = now_ns + round(_SHARE * self._interval_ns)
            due_ns = earliest_ns + (phase_ns - earliest_ns) % self._interval_ns
            seconds = (due_ns - now_ns) / SECOND_NS
        return super().wait(stop, seconds)
