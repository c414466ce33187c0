"""A recording as a source: the same steps at recorded speed, faster or slower, with seeking."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from threading import Event as StopFlag
from typing import Protocol

from msgspec import Struct

from collectors.model import Step
from collectors.session.reader import SessionReader
from engine.errors import UsageError
from engine.events import Event

_LEAST_PAUSE_S = 0.05
"""Shortest time between steps: at most 20 a second; samples in between are skipped, not shown late."""
_LONGEST_PAUSE_S = 2.0
"""Longest pause at a gap in the recording."""


class ReplayClock(Protocol):
    """Clock of a replay; tests use their own."""

    def now_s(self) -> float:
        """Seconds on a clock that never steps."""

    def wait(self, changed: threading.Condition, timeout_s: float) -> None:
        """Wait for a change, or until the timeout."""


class MonotonicClock:
    """The clock of the machine."""

    def now_s(self) -> float:
        """CLOCK_MONOTONIC in seconds."""
        return time.monotonic()

    def wait(self, changed: threading.Condition, timeout_s: float) -> None:
        """Wait on the condition, whose lock the caller holds."""
        changed.wait(timeout_s)


class Due(Struct, frozen=True):
    """The next sample to show, relative to the current one."""

    index: int
    """The sample to show; the current one if none is due yet."""
    after_s: float
    """Time at which it was due, or the next one will be, in seconds after the current one."""


def next_due(reader: SessionReader, shown: int, elapsed_s: float, speed: float) -> Due:
    """Find the last sample that is due, skipping earlier ones instead of showing them late.

    Samples are spaced by their CLOCK_MONOTONIC differences divided by the speed, but none is shown longer than two
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


MIN_SPEED, MAX_SPEED = 0.1, 1000.0
_POLL_S = 0.2
"""Interval at which a waiting replay checks for a stop request or growth of the file."""


class ReplaySource:
    """A seekable source of one session file.

    `steps` runs in the feed's thread; all other methods may be called from any thread and wake it. `window` and
    `events` use a second reader, so that neither waits for the other.

    Raises:
        LunscopeError: the file cannot be read.
        UsageError: the speed is out of range.
    """

    def __init__(self, path: str | Path, speed: float = 1.0, *, clock: ReplayClock | None = None) -> None:
        _check_speed(speed)
        self._reader = SessionReader(path)
        self._history = SessionReader(path)
        self._clock = clock or MonotonicClock()
        self._changed = threading.Condition()
        self._speed = speed
        self._paused = False
        self._closed = False
        self._shown: int | None = None
        self._shown_s = 0.0
        self._wanted: int | None = self._reader.first
        self._forward = False
        self._position_ns = self._reader.start_ns

    @property
    def seekable(self) -> bool:
        """Whether it can move in time: always."""
        return True

    @property
    def interval_s(self) -> float:
        """Usual time between samples of the recording, in seconds."""
        return self._reader.interval_s

    @property
    def start_ns(self) -> int:
        """Wall time of the first sample."""
        return self._history.start_ns

    @property
    def end_ns(self) -> int:
        """Wall time of the last sample; grows while the file is being written."""
        return self._history.end_ns

    @property
    def position_ns(self) -> int:
        """Wall time of the sample last yielded."""
        return self._position_ns

    @property
    def is_moving(self) -> bool:
        """Whether a seek or step is still to be done."""
        return self._wanted is not None

    @property
    def paused(self) -> bool:
        """Whether replay is paused, as at the end of a finished recording."""
        return self._paused

    @property
    def speed(self) -> float:
        """Recorded seconds per second."""
        return self._speed

    @property
    def notice(self) -> str:
        """Notice about missing parts of the file; empty if none."""
        return self._reader.notice or self._history.damage_read

    def pause(self, paused: bool) -> None:
        """Pause or resume."""
        with self._changed:
            self._paused = paused
            self._restart_clock()

    def set_speed(self, speed: float) -> None:
        """Set recorded seconds per second.

        Raises:
            UsageError: it is not within 0.1 to 1000.
        """
        _check_speed(speed)
        with self._changed:
            self._speed = speed
            self._restart_clock()

    def step(self, count: int) -> int | None:
        """Pause, then move by `count` samples, back if negative; returns its wall time, None if that cannot be read."""
        with self._changed:
            self._paused = True
            origin = self._wanted if self._wanted is not None else self._shown
            wanted = self._want((self._history.first if origin is None else origin) + count, forward=count > 0)
        times = self._history.times_at(wanted)
        return None if times is None else times[0]

    def seek(self, time_ns: int) -> None:
        """Go to the sample at or before a wall time."""
        index = self._history.index_at(time_ns)
        with self._changed:
            self._want(index, forward=False)

    def window(self, end_ns: int, count: int) -> Iterator[Step]:
        """Up to `count` steps ending at a wall time, oldest first, one at a time in memory."""
        last = self._history.index_at(end_ns)
        return self._history.steps(last - max(count, 0) + 1, last)

    def between(self, start_ns: int, end_ns: int) -> Iterator[Step]:
        """Read the steps of a range of wall time, one at a time in memory."""
        return self._history.steps(self._history.index_at(start_ns), self._history.index_at(end_ns))

    def events(self) -> list[Event]:
        """All events of the recording, by time."""
        return self._history.events()

    def steps(self, stop: StopFlag) -> Iterator[Step]:
        """Yield steps when due or requested, until `stop` is set; at the end of the recording it waits for either."""
        with self._changed:
            if not self._closed:
                self._reader.notice  # noqa: B018 (the first time it checks the file, which would hold up a screen's keys)
        while (step := self._next(stop)) is not None:
            yield step

    def close(self) -> None:
        """End `steps` and release the file; may be called twice."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._reader.close()
        self._history.close()

    def _want(self, index: int, *, forward: bool) -> int:
        self._forward = forward
        self._wanted = wanted = min(max(index, self._history.first), len(self._history) - 1)
        self._changed.notify_all()
        return wanted

    def _restart_clock(self) -> None:
        self._shown_s = self._clock.now_s()
        self._changed.notify_all()

    def _next(self, stop: StopFlag) -> Step | None:
        """Wait for the next step to show; None when stopped."""
        with self._changed:
            while not (stop.is_set() or self._closed):
                is_asked = self._wanted is not None
                step = self._asked_for() if is_asked else self._fallen_due()
                if step is not None:
                    self._position_ns = step.current.time_ns
                if is_asked:
                    self._wanted = None
                if step is not None:
                    return step
        return None

    def _asked_for(self) -> Step | None:
        """Return the step requested by a seek or step, skipping unreadable ones."""
        assert self._wanted is not None, "asked only when it is"
        wanted = self._wanted
        back = range(wanted, self._reader.first - 1, -1)
        ahead = range(wanted, len(self._reader))
        for index in chain(*((ahead, back) if self._forward else (back, ahead))):
            step = self._reader.step_at(index)
            if step is not None:
                self._shown, self._shown_s = index, self._clock.now_s()
                return step
        return None

    def _fallen_due(self) -> Step | None:
        """Return the step that is due, or wait briefly."""
        shown = self._shown
        if shown is None or self._paused or self._at_end(shown):
            self._clock.wait(self._changed, _POLL_S)
            return None
        due = next_due(self._reader, shown, self._clock.now_s() - self._shown_s, self._speed)
        if due.index == shown:
            self._clock.wait(self._changed, min(_POLL_S, self._shown_s + due.after_s - self._clock.now_s()))
            return None
        self._shown, self._shown_s = due.index, self._shown_s + due.after_s
        return self._reader.step_at(due.index)

    def _at_end(self, shown: int) -> bool:
        """Whether this is the last sample; a finished recording pauses there, a growing one continues."""
        if shown + 1 < len(self._reader):
            return False
        self._paused = self._reader.complete
        self._shown_s = self._clock.now_s()
        return True


def _check_speed(speed: float) -> None:
    if not MIN_SPEED <= speed <= MAX_SPEED:
        raise UsageError(f"speed {speed:g}: must be within {MIN_SPEED:g} and {MAX_SPEED:g}")
