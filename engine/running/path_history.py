"""The failures of the paths of one run, put together from the engine's counters as they are read."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from engine.results.path_outcome import PathOutcome
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
