"""Counters of a running engine, its paths and logical I/Os, for more than one reader."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from engine.backend.protocol import Cells, LoadBackend
from engine.results.layout_result import PathOutcome
from engine.running.layout_counters import PATH_ERRORS, PATH_FAILED, PATH_TARGET


class PathHistory:
    """Follows path counters; every member may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._errors: NDArray[np.uint64] | None = None
        """Failed attempts of each path when it last worked."""
        self._open: dict[int, int] = {}
        """Index into the outcomes, for each path that is failed now."""
        self._outcomes: list[PathOutcome] = []

    @property
    def outcomes(self) -> tuple[PathOutcome, ...]:
        """All failures so far, the first first."""
        return tuple(self._outcomes)

    def observe(
        self, counters: NDArray[np.uint64], targets: Sequence[str], names: Sequence[str], elapsed_s: float
    ) -> None:
        """Take path counters in.

        Args:
            counters: columns as the raw table load_path, a row per path of every target.
            targets: names of the targets.
            names: names of the paths.
            elapsed_s: since the start of the load.
        """
        if not len(counters):
            return
        with self._lock:
            if self._errors is None:
                self._errors = np.zeros(len(counters), np.uint64)
            failed = set(np.flatnonzero(counters[:, PATH_FAILED]).tolist())
            for row in sorted(failed - self._open.keys()):
                self._open[row] = len(self._outcomes)
                target = targets[int(counters[row, PATH_TARGET])]
                self._outcomes.append(PathOutcome(target, names[row], time.time_ns(), elapsed_s, 0))
            for row, place in self._open.items():
                retried = int(counters[row, PATH_ERRORS] - self._errors[row])
                self._outcomes[place] = replace(self._outcomes[place], ios_retried=retried)
            for row in self._open.keys() - failed:
                place = self._open.pop(row)
                self._outcomes[place] = replace(
                    self._outcomes[place], returned_time_ns=time.time_ns(), returned_s=elapsed_s
                )
            working = [row for row in range(len(counters)) if row not in self._open]
            self._errors[working] = counters[working, PATH_ERRORS]


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
