"""Totals of a recording since counters were cleared: thousands of samples, read in threads of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable

from msgspec import Struct, field

from collectors.model import Sample
from collectors.totals.between import LevelTotals, largest_latency_ns, level_totals
from collectors.totals.level import CountLevel, CountSubject
from engine.background_call import BackgroundCall
from engine.errors import LunscopeError
from engine.replacing import replace
from tui.transport import SECOND_NS, ReplayTransport

MOST_SAMPLES = 7200
"""Samples that are read for the largest latency since a mark."""
TOO_LONG = f"more than {MOST_SAMPLES:,} samples since: lunscope report --from FILE --since-mark NAME"
"""Why there is no largest latency of a longer time."""
BEING_READ = "being read from the recording"
_NOTHING = "the recording has no samples of that time"
_AT_ONCE_S = 0.03
"""How long the screen waits for what takes no longer: one step of a replay shows no gap."""


class _Largest(Struct, frozen=True):
    """The largest latency from a mark up to a sample."""

    mark_ns: int
    upto_ns: int
    latency_ns: int | None


class _ReadTotals(Struct):
    """Reads for one subject and moment."""

    mark_ns: int
    now_ns: int
    given_up: threading.Event = field(default_factory=threading.Event)
    call: BackgroundCall[LevelTotals | str] | None = None


class RecordedTotals:
    """Reads what was done between a mark and the moment shown; at the next moment only what came since."""

    def __init__(self, transport: ReplayTransport, changed: Callable[[], object]) -> None:
        self._transport = transport
        self._changed = changed
        """Called from a thread when totals are there."""
        self._readings: dict[tuple[CountLevel, str], _ReadTotals] = {}
        self._largest: dict[tuple[CountLevel, str], _Largest] = {}

    def of(self, subject: CountSubject, mark_ns: int, now_ns: int) -> LevelTotals | str:
        """Return the totals of a subject, or why there are none (yet)."""
        which = subject.level, subject.key
        reading = self._readings.get(which)
        if reading is None or (reading.mark_ns, reading.now_ns) != (mark_ns, now_ns):
            if reading is not None:
                reading.given_up.set()
            self._readings[which] = reading = self._begun(subject, _ReadTotals(mark_ns, now_ns))
        if reading.call is None or not reading.call.done.wait(_AT_ONCE_S):
            return BEING_READ
        try:
            return reading.call.result()
        except LunscopeError as error:
            return str(error)

    def close(self) -> None:
        """Give up what is being read."""
        for reading in self._readings.values():
            reading.given_up.set()

    def _begun(self, subject: CountSubject, reading: _ReadTotals) -> _ReadTotals:
        def read() -> LevelTotals | str:
            try:
                return self._read(subject, reading)
            finally:
                self._changed()

        reading.call = BackgroundCall(read, "lunscope-totals")
        return reading

    def _read(self, subject: CountSubject, reading: _ReadTotals) -> LevelTotals | str:
        base, now = (self._sample_at(time_ns) for time_ns in (reading.mark_ns, reading.now_ns))
        if base is None or now is None:
            return _NOTHING
        if now.time_ns - base.time_ns > MOST_SAMPLES * self._transport.source.interval_s * SECOND_NS:
            return replace(level_totals(base, now, subject, None), latency_reason=TOO_LONG)
        return level_totals(base, now, subject, self._largest_latency_ns(subject, reading, base))

    def _largest_latency_ns(self, subject: CountSubject, reading: _ReadTotals, base: Sample) -> int | None:
        which = subject.level, subject.key
        known = self._largest.get(which)
        if known is None or known.mark_ns != reading.mark_ns or known.upto_ns > reading.now_ns:
            known = _Largest(reading.mark_ns, base.time_ns, None)
        for step in self._transport.source.between(known.upto_ns + 1, reading.now_ns):
            if reading.given_up.is_set():
                break
            sample = step.current
            if sample.time_ns > known.upto_ns:
                latencies = known.latency_ns, largest_latency_ns((sample,), subject)
                latency_ns = max((value for value in latencies if value is not None), default=None)
                known = _Largest(reading.mark_ns, sample.time_ns, latency_ns)
        self._largest[which] = known
        return known.latency_ns

    def _sample_at(self, time_ns: int) -> Sample | None:
        return next((step.current for step in self._transport.past(time_ns, 1)), None)
