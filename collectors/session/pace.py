"""When the samples of a recording fall due while it is replayed."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Protocol

from collectors.session.reader import SessionReader

_LEAST_PAUSE_S = 0.05
"""No more than 20 steps a second: what comes between them is passed over, not shown late."""
_LONGEST_PAUSE_S = 2.0
"""A gap in the recording is not waited out."""


class ReplayClock(Protocol):
    """What replay measures and waits with; tests bring their own."""

    def now_s(self) -> float:
        """Seconds on a clock that never steps."""

    def wait(self, changed: threading.Condition, timeout_s: float) -> None:
        """Wait until told of a change, or so long."""


class MonotonicClock:
    """The clock of the machine."""

    def now_s(self) -> float:
        """CLOCK_MONOTONIC in seconds."""
        return time.monotonic()

    def wait(self, changed: threading.Condition, timeout_s: float) -> None:
        """Wait on the condition, whose lock the caller holds."""
        changed.wait(timeout_s)


@dataclass(frozen=True, slots=True)
class Due:
    """What is to be shown next, seen from the sample that is shown."""

    index: int
    """The sample to show; the one shown if none is due yet."""
    after_s: float
    """When it fell due, or when the next will, in seconds after the shown one."""


def next_due(reader: SessionReader, shown: int, elapsed_s: float, speed: float) -> Due:
    """Find the last sample that is due, passing over those before it rather than showing them late.

    Samples keep the distances of CLOCK_MONOTONIC at recording, divided by the speed, but none stays longer than two
    seconds or one and a half intervals.
    """
    due_s, last = 0.0, len(reader) - 1
    for index in range(shown, last):
        next_s = due_s + _pause_s(reader, index, speed)
        if max(next_s, _LEAST_PAUSE_S) > elapsed_s:
            return Due(index, due_s if index > shown else max(next_s, _LEAST_PAUSE_S))
        due_s = next_s
    return Due(last, due_s)


def _pause_s(reader: SessionReader, index: int, speed: float) -> float:
    usual_s = reader.interval_s / speed
    before, after = reader.times_at(index), reader.times_at(index + 1)
    if before is None or after is None:
        return usual_s
    recorded_s = max(0, after[1] - before[1]) / 1e9 / speed
    return min(recorded_s, max(_LONGEST_PAUSE_S, 1.5 * usual_s))
