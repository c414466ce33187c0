"""The clock of another host against ours, by exchanges of four timestamps as in NTP (RFC 5905, section 8)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

KEPT = 16
"""Exchanges of which the best is used: about as many seconds, in which clocks drift apart by well below 1 ms."""


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """What is known of the other clock."""

    offset_ns: int
    """Its CLOCK_MONOTONIC minus ours."""
    bound_ns: int
    """The offset is right within plus or minus this: half of the round trip, whatever way took longer."""
    round_trip_ns: int
    """Time on the way there and back."""


class ClockEstimate:
    """Keeps the exchange with the shortest round trip of the last KEPT."""

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
