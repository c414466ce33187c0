"""Due times of samples, a grid of absolute times so that delays do not accumulate, and events about skipped ticks."""

from __future__ import annotations

import time
from threading import Event as StopFlag
from typing import Protocol

from msgspec import Struct

from engine.events import Event, EventKind

REPORT_EVERY_NS = 60_000_000_000


class SkipReporter:
    """Counts skipped ticks; the first is reported at once, later ones together once a minute."""

    def __init__(self) -> None:
        self._unreported = 0
        self._quiet_until_ns = 0

    def report(self, skipped: int, now_ns: int) -> tuple[Event, ...]:
        """Add the ticks skipped before this one; return the event to report, if any."""
        self._unreported += skipped
        if not self._unreported or now_ns < self._quiet_until_ns:
            return ()
        ticks = "1 tick was" if self._unreported == 1 else f"{self._unreported:,} ticks were"
        text = f"{ticks} left out: this host or the screen was too busy"
        event = Event.now(EventKind.MONITOR, text, skipped=self._unreported)
        self._unreported, self._quiet_until_ns = 0, now_ns + REPORT_EVERY_NS
        return (event,)


SECOND_NS = 1_000_000_000
WARM_UP_NS = SECOND_NS // 4
"""Delay of a second sample, which gives screens their first rates."""


class Clock(Protocol):
    """The two clocks of a sample, and waiting on the first."""

    def monotonic_ns(self) -> int:
        """CLOCK_MONOTONIC."""

    def time_ns(self) -> int:
        """CLOCK_REALTIME."""

    def wait(self, stop: StopFlag, seconds: float) -> bool:
        """Wait until the timeout, or until `stop` is set or requests a sample; return whether it did not time out."""


class SystemClock:
    """The kernel's clocks."""

    def monotonic_ns(self) -> int:
        """Read CLOCK_MONOTONIC."""
        return time.monotonic_ns()

    def time_ns(self) -> int:
        """Read CLOCK_REALTIME."""
        return time.time_ns()

    def wait(self, stop: StopFlag, seconds: float) -> bool:
        """Wait on the flag."""
        return stop.wait(seconds)


class SampleFlag(StopFlag):
    """A stop flag that can also request a sample ahead of schedule: `wait` then returns True while it is not set."""

    def __init__(self) -> None:
        super().__init__()
        self._woken = StopFlag()

    def request(self) -> None:
        """End the wait that is under way, or the next one."""
        self._woken.set()

    def set(self) -> None:
        """Stop."""
        super().set()
        self._woken.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for a request or the stop; a request is used up by this."""
        woken = self._woken.wait(timeout)
        self._woken.clear()
        if self.is_set():
            self._woken.set()
        return woken


class Schedule(Struct, frozen=True):
    """Ticks at the start, after the warm-up if the interval is much longer, and at every interval from the start."""

    start_ns: int
    interval_ns: int

    def next(self, due_ns: int, now_ns: int) -> tuple[int, int]:
        """Return the time of the tick after the one due at `due_ns`, and the number of skipped ticks.

        If more than one is overdue only the latest is read: reading all at once would give intervals of zero length.
        """
        due_ns = self._after(due_ns)
        overdue = max(0, now_ns - due_ns)
        grid_ns = self.start_ns + (due_ns - self.start_ns + overdue) // self.interval_ns * self.interval_ns
        if grid_ns <= due_ns:
            return due_ns, 0
        first_ns = self._after(due_ns)
        return grid_ns, 1 + (grid_ns - first_ns) // self.interval_ns

    def _after(self, due_ns: int) -> int:
        if due_ns == self.start_ns and self.interval_ns >= 2 * WARM_UP_NS:
            return self.start_ns + WARM_UP_NS
        return self.start_ns + ((due_ns - self.start_ns) // self.interval_ns + 1) * self.interval_ns
