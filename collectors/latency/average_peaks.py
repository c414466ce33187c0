"""Average peak latency: the mean of the largest latency of each second, over a range of frames."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from collectors.all_subjects import REPORTED
from collectors.derive.known_sums import Slots, enlarged
from collectors.model import Frame, FrameTable, Rows
from collectors.sampling.schedule import SECOND_NS

_TABLES = tuple(subject.table for subject in REPORTED if any(field.id == "max_ms" for field in subject.fields))


class AveragePeaks:
    """Averages frames in order, live or from a recording; seconds without I/O are ignored.

    An interval longer than a second counts as one second.
    """

    def __init__(self, tables: tuple[str, ...] = _TABLES) -> None:
        self._peaks = {table: _TablePeaks() for table in tables}
        self._longest_s = 0.0

    @property
    def each_s(self) -> float:
        """Longest interval that one peak covers, at least a second."""
        return max(self._longest_s, 1.0)

    def add(self, frame: Frame) -> None:
        """Add the largest latencies of a frame."""
        if not math.isnan(frame.elapsed_s):
            self._longest_s = max(self._longest_s, frame.elapsed_s)
        for name, peaks in self._peaks.items():
            if name in frame.tables:
                peaks.add(frame.monotonic_ns // SECOND_NS, frame.tables[name])

    def of(self, table: str, rows: Rows) -> NDArray[np.float64]:
        """Average peak latency in milliseconds of each row, NaN where there was none; shape (len(rows),)."""
        return self._peaks[table].of(rows)


class _TablePeaks:
    def __init__(self) -> None:
        self._slots = Slots()
        self._second: int | None = None
        self._largest, self._sum, self._seconds = np.zeros(0), np.zeros(0), np.zeros(0)

    def add(self, second: int, table: FrameTable) -> None:
        if second != self._second:
            self._close_second()
            self._second = second
        at = self._slots.of(table.rows)
        self._largest, self._sum, self._seconds = (
            enlarged(values, len(self._slots), fill)
            for values, fill in ((self._largest, np.nan), (self._sum, 0.0), (self._seconds, 0.0))
        )
        largest = table.columns.get("max_ms")
        if largest is not None:
            self._largest[at] = np.fmax(self._largest[at], largest)

    def of(self, rows: Rows) -> NDArray[np.float64]:
        self._close_second()
        with np.errstate(invalid="ignore"):
            means = np.append(self._sum / self._seconds, np.nan)
        return means[[self._slots.at(key) for key in rows.keys]] if len(rows) else np.zeros(0)

    def _close_second(self) -> None:
        known = ~np.isnan(self._largest)
        self._sum[known] += self._largest[known]
        self._seconds[known] += 1
        self._largest[:] = np.nan
        self._second = None
