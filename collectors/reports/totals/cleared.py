"""Cleared counters of a live host: the sample at each clearing, and the largest latency since."""

from __future__ import annotations

import threading

from msgspec import Struct

from collectors.model import Sample
from collectors.reports.totals.level import CountLevel, CountSubject, LevelTotals, largest_latency_ns, level_totals
from collectors.tables.block.schema import DISK, PATH_ERRORS, PORT_ERRORS, TRACE
from engine.replacing import replace

_NEEDED = (DISK.name, PATH_ERRORS.name, PORT_ERRORS.name, TRACE.name)


class _Base(Struct):
    sample: Sample
    max_latency_ns: int | None = None


class ClearedCounters:
    """Bases of the totals of any number of subjects; the thread of the feed adds samples, the screens read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bases: dict[tuple[CountLevel, str], tuple[CountSubject, _Base]] = {}
        self._latest: Sample | None = None
        self.first_ns: int | None = None
        """Wall time of the first sample; None before it."""

    @property
    def latest(self) -> Sample | None:
        """The newest sample, with the tables needed for totals only; None before the first."""
        return self._latest

    def take(self, sample: Sample) -> None:
        """Add the next sample."""
        with self._lock:
            self._latest = reduced(sample)
            if self.first_ns is None:
                self.first_ns = sample.time_ns
            for subject, base in self._bases.values():
                peak = largest_latency_ns((sample,), subject)
                known = (one for one in (peak, base.max_latency_ns) if one is not None)
                base.max_latency_ns = max(known, default=None)

    def clear(self, subject: CountSubject) -> None:
        """Count a subject from the newest sample on."""
        with self._lock:
            if self._latest is not None:
                self._bases[subject.level, subject.key] = subject, _Base(self._latest)

    def totals(self, subject: CountSubject) -> LevelTotals | None:
        """Return the totals of a subject up to the newest sample; None if it was not cleared."""
        with self._lock:
            found = self._bases.get((subject.level, subject.key))
            if found is None or self._latest is None:
                return None
            base = found[1]
            return level_totals(base.sample, self._latest, subject, base.max_latency_ns)


def reduced(sample: Sample) -> Sample:
    """Leave out the tables that totals and sheets do not need, so that they can be freed."""
    tables = {name: sample.tables[name] for name in _NEEDED if name in sample.tables}
    return replace(sample, tables=tables, histograms={}, events=())
