"""Counters of a running engine, its paths and logical I/Os, for more than one reader."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from engine.backend.protocol import EpochStats, LoadBackend
from engine.replacing import replace
from engine.text import three_digits

if TYPE_CHECKING:
    from engine.results.layout_result import PathOutcome

_FEW_IOS = 100


def tail_line(stats: EpochStats, names: Sequence[str]) -> str:
    """As in "whole I/Os 0.86 ms, 1.5 x a part; slowest disk sdc costs 35 %"; empty where no I/O was cut or copied."""
    from engine.results.layout_result import logical_result  # noqa: PLC0415 (results can wait until a load runs)
    from engine.results.measured import BOTH, measure  # noqa: PLC0415 (as above)

    logical = logical_result(stats, names, measure(stats, None, BOTH))
    if logical is None or logical.split.total.ios < _FEW_IOS:
        return ""
    mean_ns, factor, slowest = logical.split.total.mean_ns, logical.mean_amplification, logical.slowest
    if mean_ns is None or factor is None:
        return ""
    line = f"whole I/Os {three_digits(mean_ns / 1e6)} ms, {factor:.2f} x a part"
    cost = None if slowest is None else logical.cost_pct(slowest)
    return line if slowest is None or cost is None else f"{line}; slowest disk {slowest.target} costs {cost:.0f} %"


PATH_PEAKS = LOGICAL_PEAKS = [3, 7]
"""read_peak_ns and write_peak_ns of the raw tables load_path and load_logical."""
PATH_ERRORS, PATH_FAILED, PATH_TARGET = 8, 10, 11


class KeptPeaks:
    """Counters for more than one reader; peaks, which the engine gives once, survive `peek` until `take`."""

    def __init__(self, read: Callable[[], NDArray[np.uint64]], peaks: Sequence[int]) -> None:
        self._read_engine, self._peaks = read, peaks
        self._lock = threading.Lock()
        self._kept: NDArray[np.uint64] | None = None

    def peek(self) -> NDArray[np.uint64]:
        """Counters now, the peaks of the interval so far included."""
        with self._lock:
            return self._read().copy()

    def take(self) -> NDArray[np.uint64]:
        """Counters now; the next interval of the peaks begins."""
        with self._lock:
            values, self._kept = self._read(), None
            return values

    def _read(self) -> NDArray[np.uint64]:
        values = self._read_engine()
        if self._kept is not None:
            values[:, self._peaks] = np.maximum(values[:, self._peaks], self._kept)
        self._kept = values[:, self._peaks].copy()
        return values


class LayoutReading(Struct, frozen=True, eq=False):
    """What the load collector turns into the tables of paths and logical I/Os; no rows where there are none."""

    path_keys: tuple[str, ...]
    """One per path and unique per run; the same object during a run."""
    path_names: tuple[str, ...]
    paths: NDArray[np.uint64]
    """Shape (paths, 12), columns as the raw table load_path."""
    logical_keys: tuple[str, ...]
    """One and unique per run; the same object during a run."""
    logical: NDArray[np.uint64]
    """Shape (0 or 1 for each load, 9), columns as the raw table load_logical."""
    logical_names: tuple[str, ...] = ("whole I/Os",)
    """One per key."""


class LayoutCounters:
    """Reads the counters of an engine's paths and whole I/Os."""

    def __init__(self, engine: LoadBackend, keys: Sequence[str], paths: Sequence[Sequence[str]]) -> None:
        """Name the rows: `keys` of the targets, and the names of their paths, none for a target with one."""
        self._engine = engine
        self._paths = KeptPeaks(engine.path_counters, PATH_PEAKS)
        each = [(key, names or ("",)) for key, names in zip(keys, paths, strict=True)]
        numbered = ((f"{key}:{number}", bool(name)) for key, names in each for number, name in enumerate(names))
        self._keys = tuple(key for key, is_path in numbered if is_path)
        self._logical_keys = (f"{keys[0]}:logical",)
        self.names = tuple(name for _, names in each for name in names)
        self._shown = np.array([bool(name) for name in self.names], bool)
        self._shown_names = tuple(name for name in self.names if name)

    def peek(self) -> NDArray[np.uint64]:
        """Path counters now, a row for each of `names`; no rows where no target has several paths."""
        return self._paths.peek()

    def take(self) -> LayoutReading:
        """Counters now; the next interval of the peaks begins."""
        paths, logical = self._paths.take(), self._engine.logical_counters().reshape(1, -1)
        if not logical.any():
            logical = logical[:0]
        if not len(paths):
            return LayoutReading((), (), paths, self._logical_keys, logical)
        return LayoutReading(self._keys, self._shown_names, paths[self._shown], self._logical_keys, logical)


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
        from engine.results.layout_result import PathOutcome  # noqa: PLC0415 (as above)

        with self._lock:
            if self._errors is None:
                self._errors = np.zeros(len(counters), np.uint64)
            failed = set(np.flatnonzero(counters[:, PATH_FAILED]).tolist())
            for row in sorted(failed - self._open.keys()):
                self._open[row] = len(self._outcomes)
                target = targets[int(counters[row, PATH_TARGET])]
                self._outcomes.append(PathOutcome(target, names[row], time.time_ns(), elapsed_s, 0))
            for row, position in self._open.items():
                retried = int(counters[row, PATH_ERRORS] - self._errors[row])
                self._outcomes[position] = replace(self._outcomes[position], ios_retried=retried)
            for row in self._open.keys() - failed:
                position = self._open.pop(row)
                self._outcomes[position] = replace(
                    self._outcomes[position], returned_time_ns=time.time_ns(), returned_s=elapsed_s
                )
            working = [row for row in range(len(counters)) if row not in self._open]
            self._errors[working] = counters[working, PATH_ERRORS]


PEAKS = [3, 7]
"""read_peak_ns and write_peak_ns of the raw table load."""
ERRORS, IN_FLIGHT, QUEUE_DEPTH, ACTIVE, FAILING, EPOCH, SKIPPED = range(8, 15)
IOS, LATENCIES, SERVICES, OUTSTANDING_NS = [0, 4], [2, 6], [15, 16], 17
"""More columns of the raw table load, lists for reads and for writes."""


class InFlight(Struct, frozen=True):
    """I/Os outstanding on average over an interval, and how long those took that completed in it."""

    mean: float
    service_ns: float | None
    """Mean time from submit to reap, where latencies count from an intended start; None elsewhere."""


def in_flight_between(before: NDArray[np.uint64], after: NDArray[np.uint64], elapsed_s: float) -> InFlight:
    """Integrate over time how many I/Os were outstanding, from the counters at both ends.

    At any moment the times of completed I/Os and those of outstanding ones so far add up to that integral. It needs no
    samples, which miss I/Os that are short and few, or at a rate that the samples keep in step with.
    """
    grown = (after.astype(np.int64) - before.astype(np.int64)).sum(axis=0)
    service_ns, ios = int(grown[SERVICES].sum()), int(grown[IOS].sum())
    completed_ns = service_ns or int(grown[LATENCIES].sum())
    mean = max(completed_ns + int(grown[OUTSTANDING_NS]), 0) / (elapsed_s * 1e9) if elapsed_s > 0 else 0.0
    return InFlight(mean, service_ns / ios if service_ns and ios else None)
