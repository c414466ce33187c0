"""Intervals of a recording, read one at a time."""

from __future__ import annotations

from collections.abc import Iterator

from collectors.model import SeekableSource
from tui.history.intervals import KeptInterval, kept_interval


class RecordedIntervals:
    """Reads a recording beside the one that shows it."""

    def __init__(self, source: SeekableSource) -> None:
        self._source = source

    def between(self, start_ns: int, end_ns: int) -> Iterator[KeptInterval]:
        """Intervals that lie within a range of wall time, oldest first."""
        from collectors.rates import derive  # noqa: PLC0415 (what it needs can wait until it is used)

        for step in self._source.between(start_ns, end_ns):
            interval = kept_interval(step, derive(step.previous, step.current))
            if interval is not None and start_ns <= interval.start_ns and interval.end_ns <= end_ns:
                yield interval
