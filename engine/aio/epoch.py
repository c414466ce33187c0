"""What is measured while no knob moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from engine.aio.tally import CellCounter, Peaks, Tally
from engine.backend.protocol import Cells
from engine.job.spec import Knobs

SETTLE_NS = 100_000_000
"""Least time between a turn and the start of measuring."""
_SECOND_NS = 1_000_000_000


CpuTimes: TypeAlias = tuple[int, int, int, int | None]
"""CPU time in nanoseconds: of the engine, of the whole host, and of all its processors, idle or not."""


class EpochSnapshot(Struct, frozen=True, eq=False):
    """Statistics of one epoch as engine.backend.protocol.EpochStats."""

    index: int
    knobs: Knobs
    turned_ns: int
    start_ns: int | None
    end_ns: int | None
    counts: NDArray[np.uint64]
    peaks: NDArray[np.uint64]
    transient_ios: int
    cells: Cells
    fsyncs: NDArray[np.uint64]
    cpu_ns: CpuTimes | None

    @property
    def services(self) -> NDArray[np.uint64]:
        """Nothing: the loop is closed, and latencies are service times."""
        return np.zeros((*self.counts.shape[:2], 3), np.uint64)

    @property
    def service_cells(self) -> Cells:
        """Nothing, as `services`."""
        return CellCounter().cells()

    @property
    def skipped(self) -> NDArray[np.uint64]:
        """Nothing arrives by a schedule."""
        return np.zeros(len(self.counts), np.uint64)

    @property
    def path_counts(self) -> NDArray[np.uint64]:
        """No target has several paths here."""
        return np.zeros((0, 2, 6), np.uint64)

    @property
    def path_cells(self) -> Cells:
        """No target has several paths here."""
        return CellCounter().cells()

    @property
    def logical_counts(self) -> NDArray[np.uint64]:
        """Only parts are measured here."""
        return np.zeros((1, 2, 6), np.uint64)

    @property
    def logical_peaks(self) -> NDArray[np.uint64]:
        """Only parts are measured here."""
        return np.zeros((2, 3, 2), np.uint64)

    @property
    def logical_cells(self) -> Cells:
        """Only parts are measured here."""
        return CellCounter().cells()

    @property
    def delays(self) -> NDArray[np.uint64]:
        """Only parts are measured here."""
        return np.zeros((len(self.counts), 2), np.uint64)

    @property
    def policy_ns(self) -> float | None:
        """Nothing is chosen here."""
        return None


class Epoch:
    """Collects the statistics of one epoch; RunStats is its only caller."""

    def __init__(
        self,
        index: int,
        knobs: Knobs,
        turned_ns: int,
        targets: int,
        cpu: Callable[[], CpuTimes] = lambda: (0, 0, 0, None),
    ) -> None:
        self.index = index
        self.knobs = knobs
        self.turned_ns = turned_ns
        self.opened_ns: int | None = turned_ns
        """From when its I/Os are issued; None while it waits for those of epochs before."""
        self.start_ns: int | None = None
        self.end_ns: int | None = None
        self._transient_ios = 0
        self._tallies = [(Tally(), Tally()) for _ in range(targets)]
        self._peaks = Peaks(targets)
        self._cells = CellCounter()
        self._fsyncs = [Tally() for _ in range(targets)]
        self._cpu = cpu
        self._cpu_at_start: CpuTimes | None = None
        self._cpu_at_end: CpuTimes | None = None

    def begin(self, now_ns: int) -> None:
        """Start measuring if the settling time is over; all I/Os of earlier epochs must be done."""
        if self.start_ns is None and self.opened_ns is not None and now_ns - self.opened_ns >= SETTLE_NS:
            self._cpu_at_start = self._cpu()
            self.start_ns = now_ns

    def end(self, now_ns: int) -> None:
        """Stop measuring; what completes from now on is transient."""
        if self.end_ns is None:
            self.end_ns = now_ns
            self._cpu_at_end = self._cpu()

    def record(self, target: int, direction: int, length: int, latency_ns: int, now_ns: int) -> None:
        """Count one completed I/O, as transient before measuring began and after it ended."""
        if self.start_ns is None or self.end_ns is not None:
            self._transient_ios += 1
            return
        self._tallies[target][direction].add(length, latency_ns)
        self._peaks.add(target, direction, latency_ns, (now_ns - self.start_ns) // _SECOND_NS)
        self._cells.add(target, direction, latency_ns)

    def record_fsync(self, target: int, latency_ns: int) -> None:
        """Count one fsync that succeeded."""
        if self.start_ns is not None and self.end_ns is None:
            self._fsyncs[target].add(0, latency_ns)

    def record_error(self, target: int, direction: int) -> None:
        """Count one failed I/O."""
        if self.start_ns is not None and self.end_ns is None:
            self._tallies[target][direction].errors += 1

    def snapshot(self) -> EpochSnapshot:
        """Copy what is known so far."""
        rows = [[tally.row() for tally in pair] for pair in self._tallies]
        return EpochSnapshot(
            self.index,
            self.knobs,
            self.turned_ns,
            self.start_ns,
            self.end_ns,
            np.array(rows, np.uint64),
            self._peaks.sums(),
            self._transient_ios,
            self._cells.cells(),
            np.array([[one.ios, one.latency_ns, one.largest_ns, one.errors] for one in self._fsyncs], np.uint64),
            self._cpu_used(),
        )

    def _cpu_used(self) -> CpuTimes | None:
        if self._cpu_at_start is None:
            return None
        *begun, waited_before = self._cpu_at_start
        *ended, waited = self._cpu_at_end or self._cpu()
        engine, host_busy, host = (end - start for start, end in zip(begun, ended, strict=True))
        return engine, host_busy, host, None if waited_before is None or waited is None else waited - waited_before
