"""Intervals with all their figures, newest or recorded: to compare parts of the time, and to show the past again."""

from __future__ import annotations

import math
import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct

from collectors.model import Frame, Histograms, SeekableSource, Step
from collectors.series import Series
from tui.history.packed import IntervalPacker, PackedInterval

BUDGET_BYTES = 4 << 20
"""Memory for figures and histograms: a quarter of an hour of seconds of thirty disks, minutes of hundreds of paths."""
MOST_INTERVALS = 36_000


class KeptInterval(Struct, frozen=True, eq=False):
    """One interval; times are wall times, as those of events."""

    start_ns: int
    frame: Frame
    histograms: Mapping[str, Histograms]

    @property
    def end_ns(self) -> int:
        """Wall time at its end."""
        return self.frame.time_ns


def kept_interval(step: Step, frame: Frame) -> KeptInterval | None:
    """Take the interval of a step and its frame; None if its length is not known."""
    if step.previous is None or not math.isfinite(frame.elapsed_s):
        return None
    return KeptInterval(step.previous.time_ns, frame, step.current.histograms)


class IntervalHistory:
    """Filled by the feed thread with every interval of a live host, read by any thread; the oldest are dropped."""

    def __init__(self, budget_bytes: int = BUDGET_BYTES) -> None:
        self._lock = threading.Lock()
        self._budget_bytes = budget_bytes
        self._packer = IntervalPacker()
        self._kept: deque[tuple[int, PackedInterval]] = deque()
        """Each with its start."""
        self._size_bytes = 0

    @property
    def start_ns(self) -> int:
        """Wall time from which on intervals are kept; 0 before the first."""
        with self._lock:
            return self._kept[0][0] if self._kept else 0

    def add(self, step: Step, frame: Frame) -> None:
        """Add the interval of a step, if its length is known."""
        interval = kept_interval(step, frame)
        if interval is None:
            return
        packed = self._packer.pack(interval.frame, interval.histograms)
        with self._lock:
            self._kept.append((interval.start_ns, packed))
            self._size_bytes += packed.size_bytes
            while len(self._kept) > 1 and (self._size_bytes > self._budget_bytes or len(self._kept) > MOST_INTERVALS):
                self._size_bytes -= self._kept.popleft()[1].size_bytes

    def between(self, start_ns: int, end_ns: int) -> Iterator[KeptInterval]:
        """Intervals that lie within a range of wall time, oldest first."""
        return (
            KeptInterval(begun_ns, packed.frame, packed.histograms)
            for begun_ns, packed in self._between(start_ns, end_ns)
        )

    def frame_at(self, time_ns: int) -> Frame | None:
        """Find the interval that contains a wall time, or the nearest; None before the first."""
        with self._lock:
            position = bisect_left(self._kept, time_ns, key=lambda kept: kept[1].bare.time_ns)
            return self._frame(position)

    def frame_beside(self, frame: Frame, count: int) -> Frame | None:
        """Find the frame `count` intervals after a frame, before it if negative, or the last one in that direction.

        The clock of the frames is CLOCK_MONOTONIC, as wall time may step.
        """
        with self._lock:
            position = bisect_left(self._kept, frame.monotonic_ns, key=lambda kept: kept[1].bare.monotonic_ns)
            return self._frame(position + count)

    def series(self, table: str, key: str, fields: Sequence[str], start_ns: int, end_ns: int) -> Series | None:
        """Collect the history of one row, which may have vanished since; None if it is not kept."""
        found = []
        for _, packed in self._between(start_ns, end_ns):
            figures = packed.tables.get(table)
            row = None if figures is None else figures.rows.positions.get(key)
            if figures is not None and row is not None:
                found.append((packed.bare.time_ns, [figures.value(field_id, row) for field_id in fields]))
        if not found:
            return None
        values = np.array([figures for _, figures in found])
        times = np.array([end_ns for end_ns, _ in found], np.int64)
        return Series(times, {field_id: values[:, position] for position, field_id in enumerate(fields)})

    def _between(self, start_ns: int, end_ns: int) -> list[tuple[int, PackedInterval]]:
        with self._lock:
            newest_first = []
            for begun_ns, packed in reversed(self._kept):
                if begun_ns < start_ns:
                    break
                newest_first.append((begun_ns, packed))
        return [(begun_ns, packed) for begun_ns, packed in reversed(newest_first) if packed.bare.time_ns <= end_ns]

    def _frame(self, position: int) -> Frame | None:
        if not self._kept:
            return None
        return self._kept[min(max(position, 0), len(self._kept) - 1)][1].frame


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
