"""Clocks of a fleet: another one against ours, and sampling times that all hosts share."""

from __future__ import annotations

import threading
from collections import deque

from msgspec import Struct

from collectors.sampling.schedule import SECOND_NS, SystemClock

KEPT = 16
"""The best of so many exchanges is used: in as many seconds clocks drift apart by well below 1 ms."""
_SHARE = 0.5
"""A sample that would come sooner than this share of the interval after the one before is left out."""


class ClockOffset(Struct, frozen=True):
    """What is known of the other clock."""

    offset_ns: int
    """CLOCK_MONOTONIC of the host minus ours."""
    bound_ns: int
    """The offset is right within plus or minus this: half of the round trip, whatever way took longer."""
    round_trip_ns: int
    """Time on the way there and back."""


class ClockEstimate:
    """Keeps the exchange with the shortest round trip of the last KEPT.

    Exchanges have four timestamps, as in NTP (RFC 5905, section 8).
    """

    def __init__(self) -> None:
        self._exchanges: deque[ClockOffset] = deque(maxlen=KEPT)

    def add(self, sent_ns: int, received_ns: int, answered_ns: int, returned_ns: int) -> None:
        """Add an exchange: sent and returned on our clock, received and answered on the other.

        One whose times run backwards is ignored.
        """
        round_trip_ns = (returned_ns - sent_ns) - (answered_ns - received_ns)
        if returned_ns < sent_ns or answered_ns < received_ns or round_trip_ns < 0:
            return
        offset_ns = ((received_ns - sent_ns) + (answered_ns - returned_ns)) // 2
        self._exchanges.append(ClockOffset(offset_ns, (round_trip_ns + 1) // 2, round_trip_ns))

    @property
    def best(self) -> ClockOffset | None:
        """The best exchange; None before the first."""
        return min(self._exchanges, key=lambda each: each.round_trip_ns, default=None)


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
