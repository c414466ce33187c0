"""The past that the histories hold: what was seen of a live host, or a recording, read once as far as it is shown."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from collectors.baseline import LatencyBaseline
from collectors.model import Frame, Step
from engine.replacing import replace
from tui.history.charts import History
from tui.transport import SECOND_NS, ReplayTransport

REFILLS = (60, 600)
"""Steps read for the charts after a seek: first a few, then more than the columns of a wide terminal."""
_MOST_ADDED = 300
"""Steps that are added to those held, rather than reading others, when a seek goes beyond the newest."""
_MOST_CELLS = 2_000_000
"""Usual latencies that are kept, all steps together: 16 MB."""

UsualLatencies = Mapping[str, NDArray[np.float64]]


class LivePast:
    """Adds every step of a live host to the histories."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._baseline = LatencyBaseline()
        self._last_ns: int | None = None

    def frame_of(self, step: Step) -> Frame:
        """Derive the frame of a step with the usual latencies, unless the source did, and keep both."""
        time_ns = step.current.time_ns
        if step.previous is None or (self._last_ns is not None and time_ns <= self._last_ns):
            self._baseline.reset()
        self._last_ns = time_ns
        frame = step.frame or self._baseline.add(_derived(step))
        self._history.add(frame)
        self._history.latencies.add(step)
        return frame

    def fill(self, _step: Step, _frame: Frame, _is_over: Callable[[], bool]) -> Iterator[Frame]:
        """Nothing: the past of a live host is what was seen."""
        return iter(())


class _HeldSteps(Struct):
    """Which part of a recording the histories hold: no step is missing between the first time and the last."""

    times_ns: list[int] = field(default_factory=list)
    """Ascending wall times."""
    usual_ms: list[UsualLatencies] = field(default_factory=list)
    """Usual latencies at the same steps."""
    from_start: bool = False
    """Whether it begins with the recording."""
    is_complete: bool = False
    """Whether as much was read as is wanted, not only the first few steps."""
    cells: int = 0
    last_monotonic_ns: int = 0

    @property
    def last_ns(self) -> int:
        return self.times_ns[-1] if self.times_ns else -1

    def add(self, frame: Frame) -> None:
        if frame.time_ns <= self.last_ns:
            self.clear()
        self.last_monotonic_ns = frame.monotonic_ns
        self.times_ns.append(frame.time_ns)
        self.usual_ms.append(frame.usual_ms)
        self.cells += _cells(frame.usual_ms)
        while self.cells > _MOST_CELLS and len(self.times_ns) > 1:
            self.cells -= _cells(self.usual_ms[0])
            del self.times_ns[0], self.usual_ms[0]
            self.from_start = False

    def clear(self) -> None:
        self.times_ns, self.usual_ms = [], []
        self.from_start = self.is_complete = False
        self.cells = 0

    def has_past_of(self, time_ns: int, forgotten_ns: int) -> bool:
        """Whether enough steps before a time are held: half of them, or all that the recording has."""
        if not self.times_ns or time_ns > self.last_ns:
            return False
        if self.from_start and forgotten_ns <= self.times_ns[0] <= time_ns:
            return True
        start_ns = max(self.times_ns[0], forgotten_ns)
        return time_ns - start_ns >= (self.last_ns - start_ns) / 2

    def usual_at(self, time_ns: int) -> UsualLatencies:
        """Find the usual latencies of the step at or before a time; none if it is not held."""
        place = bisect_right(self.times_ns, time_ns) - 1
        return self.usual_ms[place] if place >= 0 and time_ns <= self.last_ns else {}


class RecordedPast:
    """Keeps the histories filled up to the moment that a recording shows.

    A seek to a moment they hold reads nothing: deriving hundreds of steps again would use the processor for seconds,
    and moving back step by step would do so with every key.
    """

    def __init__(self, history: History, transport: ReplayTransport) -> None:
        self._history = history
        self._transport = transport
        self._baseline = LatencyBaseline()
        self._held = _HeldSteps()

    def frame_of(self, step: Step) -> Frame:
        """Derive the frame of a step with the usual latencies; one that follows the newest held is added to them."""
        if self._is_next(step):
            return self._add(step)
        return replace(_derived(step), usual_ms=self._held.usual_at(step.current.time_ns))

    def fill(self, step: Step, frame: Frame, is_over: Callable[[], bool]) -> Iterator[Frame]:
        """Fill the histories up to a step, and give its frame again whenever they and its usual latencies changed.

        `is_over` tells that another moment is shown now: what is missing is then read for that one.
        """
        time_ns, held = step.current.time_ns, self._held
        if self._history.latencies.lacks_past:
            held.is_complete = False
        if time_ns <= held.last_ns and frame.monotonic_ns > held.last_monotonic_ns:
            held.clear()  # the wall clock was set back since: times are ambiguous
        if self._is_held(frame):
            return
        most_ns = _MOST_ADDED * self._transport.source.interval_s * SECOND_NS
        if held.is_complete and 0 < time_ns - held.last_ns <= most_ns:
            yield from self._read_on(frame, is_over)
        else:
            yield from self._read_anew(step, frame, is_over)

    def _is_held(self, frame: Frame) -> bool:
        held, history = self._held, self._history
        return held.is_complete and held.has_past_of(frame.time_ns, history.forgotten_ns) and history.has_rows_of(frame)

    def _is_next(self, step: Step) -> bool:
        """Whether a step follows the newest that is held; fast replay skips samples without a jump."""
        if step.previous is None or not self._held.times_ns or step.current.time_ns <= self._held.last_ns:
            return False
        return step.previous.time_ns - self._held.last_ns <= self._transport.stride_ns

    def _add(self, step: Step) -> Frame:
        frame = self._baseline.add(_derived(step))
        self._history.add(frame)
        self._history.latencies.add(step)
        self._held.add(frame)
        return frame

    def _read_on(self, frame: Frame, is_over: Callable[[], bool]) -> Iterator[Frame]:
        """Add the steps between the newest that is held and a frame."""
        last_ns = self._held.last_ns
        for step in self._transport.source.between(last_ns + 1, frame.time_ns):
            if is_over():
                return
            if step.current.time_ns > last_ns:
                self._add(step)
        yield replace(frame, usual_ms=self._held.usual_at(frame.time_ns))

    def _read_anew(self, step: Step, frame: Frame, is_over: Callable[[], bool]) -> Iterator[Frame]:
        """Read the steps up to one: a few at first."""
        for count in REFILLS:
            held, baseline, filling = _HeldSteps(), LatencyBaseline(), self._history.filling()
            read = 0
            for earlier in self._transport.past(step.current.time_ns, count):
                if is_over():
                    return
                read += 1
                earlier_frame = baseline.add(_derived(earlier))
                filling.add(earlier, earlier_frame)
                held.add(earlier_frame)
            if not read:
                self._add(step)
                return
            held.from_start = held.from_start or read < count
            held.is_complete = read < count or count == REFILLS[-1]
            self._history.take(filling)
            self._held, self._baseline = held, baseline
            yield replace(frame, usual_ms=held.usual_at(frame.time_ns))
            if held.is_complete or is_over():
                return


def _cells(usual_ms: UsualLatencies) -> int:
    return sum(len(values) for values in usual_ms.values())


def _derived(step: Step) -> Frame:
    """Derive a frame."""
    from collectors.rates import derive  # noqa: PLC0415 (what it needs can wait until the first screen is drawn)

    return derive(step.previous, step.current)
