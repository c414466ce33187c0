"""Counters of a running engine for more than one reader."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from engine.backend.protocol import Cells, LoadBackend

_PEAKS = [3, 7]
"""read_peak_ns and write_peak_ns of the raw table load."""
ERRORS, IN_FLIGHT, QUEUE_DEPTH, ACTIVE, FAILING, EPOCH, SKIPPED = range(8, 15)


class CounterReader:
    """Reads the counters of an engine; peaks survive `peek` until `take`."""

    def __init__(self, engine: LoadBackend) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._kept: NDArray[np.uint64] | None = None

    def peek(self) -> NDArray[np.uint64]:
        """Counters now, the peaks of the interval so far included."""
        with self._lock:
            return self._read().copy()

    def take(self) -> tuple[NDArray[np.uint64], Cells, NDArray[np.uint64]]:
        """Counters now, and histogram cells and slowest I/Os since the last call; the next interval begins."""
        with self._lock:
            values = self._read()
            self._kept = None
            return values, self._engine.cells(), self._engine.slowest()

    def _read(self) -> NDArray[np.uint64]:
        values = self._engine.counters()
        if self._kept is not None:
            values[:, _PEAKS] = np.maximum(values[:, _PEAKS], self._kept)
        self._kept = values[:, _PEAKS].copy()
        return values
