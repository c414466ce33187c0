"""The usual latency of each disk in a session: a running median, in constant memory."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from collectors.model import Frame, Rows
from engine.replacing import replace

LEAST_SAMPLES = 20
"""Intervals with I/O before the latency of a disk counts as usual; their median is where the running one starts."""
LEAST_STEP = 0.01
"""Smallest relative step of the running median."""
_FIRST_STEP = 0.5


class LatencyBaseline:
    """Running median of the await of every disk, by intervals with I/O.

    After the exact median of the first LEAST_SAMPLES, each sample moves the estimate by a relative step that shrinks
    with the number of samples, up or down: it converges to the median (stochastic approximation, Robbins and Monro
    1951; Ma, Muthukrishnan and Sandler, "Frugal Streaming for Estimating Quantiles", 2013).
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all, after a jump in time."""
        self._rows = Rows((), ())
        self._first = np.full((0, LEAST_SAMPLES), np.nan)
        self._count = np.zeros(0, np.int64)
        self._median = np.full(0, np.nan)
        self._last_ns = -1

    def add(self, frame: Frame) -> Frame:
        """Take a frame, and return it with the usual latencies of the intervals before it."""
        disks = frame.tables.get("disks")
        if disks is None:
            return frame
        if frame.monotonic_ns <= self._last_ns:
            self.reset()
        self._last_ns = frame.monotonic_ns
        self._follow(disks.rows)
        usual = self._median.copy()
        if math.isfinite(frame.elapsed_s):
            self._take(disks.columns["await_ms"])
        return replace(frame, usual_ms={"disks": usual})

    def _follow(self, rows: Rows) -> None:
        if rows is self._rows:
            return
        kept = [(self._rows.positions[key], row) for row, key in enumerate(rows.keys) if key in self._rows.positions]
        source, target = np.array(kept, np.intp).reshape(-1, 2).T
        first = np.full((len(rows), LEAST_SAMPLES), np.nan)
        count, median = np.zeros(len(rows), np.int64), np.full(len(rows), np.nan)
        first[target], count[target], median[target] = self._first[source], self._count[source], self._median[source]
        self._rows, self._first, self._count, self._median = rows, first, count, median

    def _take(self, await_ms: NDArray[np.float64]) -> None:
        at = np.flatnonzero(await_ms > 0)
        early = at[self._count[at] < LEAST_SAMPLES]
        late = at[self._count[at] >= LEAST_SAMPLES]
        self._first[early, self._count[early]] = await_ms[early]
        self._count[at] += 1
        complete = early[self._count[early] == LEAST_SAMPLES]
        if len(complete):
            # As np.median of an even number, which imports masked arrays (2 MB).
            middle = np.sort(self._first[complete], axis=1)[:, LEAST_SAMPLES // 2 - 1 : LEAST_SAMPLES // 2 + 1]
            self._median[complete] = middle.mean(axis=1)
        step = np.maximum(LEAST_STEP, _FIRST_STEP / (self._count[late] - LEAST_SAMPLES + 1))
        self._median[late] *= np.exp(step * np.sign(await_ms[late] - self._median[late]))
