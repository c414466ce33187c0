"""The intervals of the load around the last knob turns: collected live, or read from a recording."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence

from collectors.model import Step
from engine.events import Event, EventKind
from tui.load.effect import BASE_S, JOINED_S, MOST_JOINED, OPENING_S, Effect, last_effect
from tui.load.load_ticks import SECOND_NS, LoadTick, tick_of
from tui.transport import ReplayTransport

MOST_TICKS = 2400
"""Enough for one turn at ten samples a second, and for a dozen at one; a tick takes up to 4 KiB."""
FAST = 30.0
"""Replay speed above which intervals without a turn are skipped."""
_SPARE_S = 3
_AHEAD_S = 10
"""How much more is read than is needed when the cursor moves back, so that not every step reads."""


class TurnIntervals:
    """Filled by the feed thread for every sample, shown or not; read by the load screen.

    It keeps what a comparison needs: the time just after each turn, and just before the next.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ticks: list[LoadTick] = []
        self._newest: LoadTick | None = None
        self._stretch_ns = (0, -1)
        """Time range of the recording that is loaded, as begin and end by CLOCK_MONOTONIC."""

    def effect(self, events: Sequence[Event], now_ns: int) -> Effect:
        """Compare around the newest turn up to a time of CLOCK_MONOTONIC."""
        with self._lock:
            ticks = list(self._ticks)
            newest = self._newest
        if newest is not None and (not ticks or newest.end_ns > ticks[-1].end_ns):
            ticks.append(newest)
        return last_effect(ticks, events, now_ns)

    def add(self, step: Step) -> None:
        """Add the next sample of a live host."""
        tick = tick_of(step)
        with self._lock:
            if tick.run or (self._ticks and self._ticks[-1].run):
                self._ticks.append(tick)
                self._ticks = _needed(self._ticks)[-MOST_TICKS:]

    def move(self, step: Step) -> None:
        """Add the sample at the cursor of a recording."""
        newest = tick_of(step)
        with self._lock:
            self._newest = newest

    def fetch(self, events: Sequence[Event], transport: ReplayTransport, step: Step, interval_s: float) -> bool:
        """Read the intervals needed at a time from a recording, unless loaded; returns whether any were read."""
        newest = tick_of(step)
        turns = _turns_of_run(events, newest.end_ns)
        begin_ns, end_ns = _stretch(turns, newest.end_ns)
        with self._lock:
            (held_begin_ns, held_end_ns), held_ticks = self._stretch_ns, self._ticks
        racing = not transport.paused and transport.speed > FAST
        if held_begin_ns <= begin_ns <= end_ns <= held_end_ns or not (turns or (newest.run and not racing)):
            return False
        begin_ns -= _AHEAD_S * SECOND_NS
        ahead_ns = end_ns + OPENING_S * SECOND_NS
        kept: list[LoadTick] = []
        if begin_ns < held_begin_ns <= end_ns <= held_end_ns and len(held_ticks) < MOST_TICKS:
            # The cursor moved back: what is held goes on from what is read.
            ahead_ns, kept = held_begin_ns, held_ticks
        to_wall_ns = step.current.time_ns - step.current.monotonic_ns
        count = math.ceil((ahead_ns - begin_ns) / SECOND_NS / max(interval_s, 1e-3)) + 1
        ticks = [tick_of(one) for one in transport.past(ahead_ns + to_wall_ns, min(count, MOST_TICKS))]
        after_ns = ticks[-1].end_ns if ticks else begin_ns
        with self._lock:
            self._ticks = [*ticks, *(tick for tick in kept if tick.end_ns > after_ns)]
            self._stretch_ns = begin_ns, max(ahead_ns, held_end_ns) if kept else ahead_ns
        return True


def _stretch(turns: Sequence[Event], now_ns: int) -> tuple[int, int]:
    """Range of intervals needed at a time: around the last turn and those joined with it.

    Before the first turn of a run, and between runs, it is the time just before.
    """
    begin_ns = now_ns - BASE_S * SECOND_NS
    moments = [event.monotonic_ns for event in turns[-MOST_JOINED:]]
    if not moments:
        return begin_ns, now_ns
    first = len(moments) - 1
    while first and moments[first] - moments[first - 1] < JOINED_S * SECOND_NS:
        first -= 1
    return moments[first] - (BASE_S + _SPARE_S) * SECOND_NS, min(now_ns, moments[-1] + OPENING_S * SECOND_NS)


def _turns_of_run(events: Sequence[Event], now_ns: int) -> list[Event]:
    """List the turns since the last start of the load, up to a time."""
    turns: list[Event] = []
    for event in events:
        if event.monotonic_ns > now_ns:
            continue
        if event.kind is EventKind.LOAD and "backend" in event.data:
            turns = []
        elif event.kind is EventKind.KNOB:
            turns.append(event)
    return turns


def _needed(ticks: Sequence[LoadTick]) -> list[LoadTick]:
    """Drop intervals that are neither soon after a turn, nor soon before the next, nor recent."""
    closes_ns, opened_ns = [0] * len(ticks), ticks[0].start_ns
    close_ns = ticks[-1].end_ns
    for position in range(len(ticks) - 1, -1, -1):
        closes_ns[position] = close_ns
        close_ns = ticks[position].start_ns if _is_opening(ticks[position]) else close_ns
    kept = []
    for tick, close_ns in zip(ticks, closes_ns, strict=True):
        opened_ns = tick.end_ns if _is_opening(tick) else opened_ns
        after, before = tick.end_ns - opened_ns, close_ns - tick.start_ns
        if after <= (OPENING_S + _SPARE_S) * SECOND_NS or before <= (BASE_S + _SPARE_S) * SECOND_NS:
            kept.append(tick)
    return kept


def _is_opening(tick: LoadTick) -> bool:
    return tick.epoch_before != tick.epoch or not tick.length_ns or not tick.run
