"""Error handling of collectors: a failing one is skipped for some time instead of ending the source."""

from __future__ import annotations

from collectors.sampling.reading import Collector, Reading
from engine.events import Event, EventKind

FIRST_PAUSE_NS = 10_000_000_000
LONGEST_PAUSE_NS = 320_000_000_000


class Guarded:
    """Reads one collector; after a failure it pauses, longer each time, and reports it once."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._name = type(collector).__name__.removesuffix("Collector").lower()
        self._pause_ns = FIRST_PAUSE_NS
        self._resume_ns = 0
        self._failing = False

    def read(self, now_ns: int) -> Reading:
        """Read, or return an empty reading during a pause."""
        if self._failing and now_ns < self._resume_ns:
            return Reading()
        try:  # An error in one collector must not stop the others.
            reading = self._collector.read()
        except Exception as error:
            return self._rest(error, now_ns)
        self._failing, self._pause_ns = False, FIRST_PAUSE_NS
        return reading

    def close(self) -> None:
        """Close the collector."""
        self._collector.close()

    def _rest(self, error: Exception, now_ns: int) -> Reading:
        first = not self._failing
        self._failing, self._resume_ns = True, now_ns + self._pause_ns
        self._pause_ns = min(2 * self._pause_ns, LONGEST_PAUSE_NS)
        if not first:
            return Reading()
        text = f"{self._name}: {error or type(error).__name__}; left out until it can be read again"
        return Reading(events=(Event.now(EventKind.MONITOR, text, collector=self._name),))
