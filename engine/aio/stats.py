"""Statistics of a running load: what is outstanding, what completed, and to which epoch it belongs."""

from __future__ import annotations

import copy
import heapq
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from engine._native import content
from engine.aio.next_io import READ, PlannedIo
from engine.backend.protocol import Cells
from engine.job.spec import Knobs
from engine.results.histogram import bucket_of

IOS, BYTES, SUM, LEAST, LARGEST, ERRORS = range(6)
BOTH = 2
SETTLE_NS = 100_000_000
"""Least time between a turn and the start of measuring."""
FAILING_AFTER = 16
"""Errors in a row after which a target is only probed."""
_SLOWEST = 16
_JUDGED_EVERY_NS = 10_000_000

Histogram: TypeAlias = Counter[tuple[int, int, int]]
"""Latencies by target, direction and bucket."""
CpuTimes: TypeAlias = tuple[int, int, int, int | None]
"""Times as in EpochStats.cpu_ns, since any moment."""


def cells_of(histogram: Mapping[tuple[int, int, int], int]) -> Cells:
    """Convert a histogram to columns, ascending."""
    ascending = sorted(histogram.items())
    keys = np.array([cell for cell, _ in ascending], np.uint32).reshape(-1, 3)
    counts = np.array([count for _, count in ascending], np.uint64)
    return keys[:, 0], keys[:, 1].astype(np.uint8), keys[:, 2].astype(np.uint16), counts


class IoCounts:
    """Rows of EpochStats.counts by target and direction, in lists, which are faster than arrays one by one."""

    def __init__(self, targets: int) -> None:
        self.rows = [([0] * 6, [0] * 6) for _ in range(targets)]
        self.histogram: Histogram = Counter()

    def add(self, io: PlannedIo, latency_ns: int) -> None:
        """Count one completed I/O."""
        row = self.rows[io.target][io.direction]
        row[IOS] += 1
        row[BYTES] += io.length
        row[SUM] += latency_ns
        row[LEAST] = min(row[LEAST] or latency_ns, latency_ns)
        row[LARGEST] = max(row[LARGEST], latency_ns)
        self.histogram[io.target, io.direction, bucket_of(latency_ns)] += 1

    def add_error(self, io: PlannedIo) -> None:
        """Count one failed I/O."""
        self.rows[io.target][io.direction][ERRORS] += 1


class Epoch:
    """What is measured while no knob moves: the members of EpochStats; those of what this engine does not do are 0."""

    start_ns: int | None = None
    end_ns: int | None = None
    transient_ios = 0
    path_counts = np.zeros((0, 2, 6), np.uint64)
    logical_counts = np.zeros((1, 2, 6), np.uint64)
    logical_peaks = np.zeros((2, 3, 2), np.uint64)
    service_cells = path_cells = logical_cells = cells_of({})
    policy_ns: float | None = None

    def __init__(self, index: int, knobs: Knobs, turned_ns: int, targets: int, cpu: Callable[[], CpuTimes]) -> None:
        """Open an epoch; `cpu` is asked when measuring begins and when it ends."""
        self.index, self.knobs, self.turned_ns = index, knobs, turned_ns
        self._counts = IoCounts(targets)
        self.services = np.zeros((targets, 2, 3), np.uint64)
        self.fsyncs = np.zeros((targets, 4), np.uint64)
        self.delays = np.zeros((targets, 2), np.uint64)
        self.skipped = np.zeros(targets, np.uint64)
        self._second = 0
        self._maxima = [[0, 0, 0] for _ in range(targets + 1)]
        """Largest latencies in this second; the last row is for all targets."""
        self._peaks = np.zeros((targets + 1, 3, 2), np.uint64)
        self._cpu = cpu
        self._cpu_times: list[CpuTimes] = []

    def begin(self, now_ns: int) -> None:
        """Start measuring if the settling time is over; all I/Os of earlier epochs must be done."""
        if self.start_ns is None and now_ns - self.turned_ns >= SETTLE_NS:
            self.start_ns = now_ns
            self._cpu_times = [self._cpu()]

    def end(self, now_ns: int) -> None:
        """Stop measuring."""
        if self.end_ns is None:
            self.end_ns = now_ns
            self._cpu_times.append(self._cpu())

    def record(self, io: PlannedIo, latency_ns: int, now_ns: int) -> None:
        """Count one completed I/O, as transient before measuring began and after it ended."""
        if self.start_ns is None or self.end_ns is not None:
            self.transient_ios += 1
            return
        self._counts.add(io, latency_ns)
        second = (now_ns - self.start_ns) // 1_000_000_000
        if second != self._second:
            self._peaks, self._second = self.peaks, second
            self._maxima = [[0, 0, 0] for _ in self._maxima]
        for row in (self._maxima[io.target], self._maxima[-1]):
            row[io.direction] = max(row[io.direction], latency_ns)
            row[BOTH] = max(row[BOTH], latency_ns)

    def record_error(self, io: PlannedIo) -> None:
        """Count one failed I/O."""
        if self.start_ns is not None and self.end_ns is None:
            self._counts.add_error(io)

    @property
    def counts(self) -> NDArray[np.uint64]:
        """I/Os, bytes, latencies and errors."""
        return np.array(self._counts.rows, np.uint64)

    @property
    def cells(self) -> Cells:
        """Histogram of the latencies."""
        return cells_of(self._counts.histogram)

    @property
    def peaks(self) -> NDArray[np.uint64]:
        """Sum of the per-second maxima, and how many seconds had any."""
        maxima = np.array(self._maxima, np.uint64)
        return np.asarray(self._peaks + np.stack([maxima, (maxima > 0).astype(np.uint64)], axis=-1))

    @property
    def cpu_ns(self) -> CpuTimes | None:
        """CPU time while measuring."""
        if self.start_ns is None:
            return None
        (*begun, waited_before), (*ended, waited) = self._cpu_times
        engine, host_busy, host = (end - start for start, end in zip(begun, ended, strict=True))
        return engine, host_busy, host, None if waited_before is None or waited is None else waited - waited_before

    def snapshot(self) -> Epoch:
        """Copy what is known so far."""
        taken = copy.copy(self)
        taken._counts, taken._maxima = copy.deepcopy((self._counts, self._maxima))
        taken._cpu_times = self._cpu_times if self.end_ns is not None else [*self._cpu_times, self._cpu()]
        return taken


class Call(Struct, frozen=True, eq=False):
    """An I/O that has not returned."""

    io: PlannedIo
    epoch: Epoch
    since_ns: int
    is_judged: bool
    """Whether its data is looked at: chosen before, as slow reads would nearly always be the first to complete."""


class _Health(Struct):
    errors_in_row: int = 0
    failing_since_ns: int = 0
    failed_ns: int = 0
    """Duration of all I/Os that failed."""


class Stats:
    """Owns all statistics of one run; every member may be called from any thread."""

    def __init__(
        self,
        targets: int,
        knobs: Knobs,
        cpu: Callable[[], CpuTimes] = lambda: (0, 0, 0, None),
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._cpu, self._clock_ns = cpu, clock_ns
        self._lock = threading.Lock()
        self._is_open = False
        self._epochs = [Epoch(0, knobs, 0, targets, cpu)]
        self._calls: set[Call] = set()
        self._counts = IoCounts(targets)
        self._health = [_Health() for _ in range(targets)]
        self._slowest: list[tuple[int, ...]] = []
        self._errors: dict[tuple[int, int, int], tuple[int, int]] = {}
        self._contents = np.zeros((targets, 3), np.uint64)
        self._judged_from_ns = 0

    @property
    def _epoch(self) -> Epoch:
        return self._epochs[-1]

    @property
    def knobs(self) -> Knobs:
        """The knobs in force."""
        return self._epoch.knobs

    def open(self) -> None:
        """Note that the load starts."""
        with self._lock:
            self._epoch.turned_ns, self._is_open = self._clock_ns(), True

    def turn(self, knobs: Knobs) -> int:
        """Close the present epoch and open the next; before the load is open the knobs are those of epoch 0."""
        with self._lock:
            now_ns = self._clock_ns()
            self._epoch.end(now_ns)
            new = Epoch(self._epoch.index + self._is_open, knobs, now_ns, len(self._health), self._cpu)
            self._epochs = [*self._epochs, new] if self._is_open else [new]
            return new.index

    def settle(self) -> None:
        """Start measuring once all I/Os of epochs before are done and the settling time is over."""
        with self._lock:
            if self._epoch.end_ns is None and all(call.epoch is self._epoch for call in self._calls):
                self._epoch.begin(self._clock_ns())

    def close(self) -> None:
        """Close the last epoch: what completes from now on is transient."""
        with self._lock:
            self._epoch.end(self._clock_ns())

    def begin(self, io: PlannedIo, knobs: Knobs) -> Call | None:
        """Note an I/O as outstanding; None if its knobs are no longer in force."""
        with self._lock:
            if knobs is not self.knobs:
                return None
            now_ns = self._clock_ns()
            is_judged = io.direction == READ and now_ns >= self._judged_from_ns
            if is_judged:
                self._judged_from_ns = now_ns + _JUDGED_EVERY_NS
            call = Call(io, self._epoch, now_ns, is_judged)
            self._calls.add(call)
            return call

    def end(self, call: Call, data: memoryview) -> None:
        """Count an I/O that succeeded."""
        kind = content(bytes(data)) if call.is_judged else ""
        with self._lock:
            io, health, now_ns = call.io, self._health[call.io.target], self._clock_ns()
            self._calls.remove(call)
            if not self.failing(io.target) or call.since_ns > health.failing_since_ns:
                # One issued before the target was found failing says nothing about it.
                health.errors_in_row = 0
            if kind:
                self._contents[io.target] += np.array((1, kind == "compressible", kind == "zeros"), np.uint64)
            latency_ns = now_ns - call.since_ns
            self._counts.add(io, latency_ns)
            self._epoch.record(io, latency_ns, now_ns)
            slow = (latency_ns, io.target, io.direction, io.offset, io.length, call.since_ns)
            (heapq.heappush if len(self._slowest) < _SLOWEST else heapq.heappushpop)(self._slowest, slow)

    def fail(self, call: Call, errno: int) -> None:
        """Count an I/O that failed; `errno` is 0 for a short transfer."""
        with self._lock:
            io, health, now_ns = call.io, self._health[call.io.target], self._clock_ns()
            self._calls.remove(call)
            health.failed_ns += now_ns - call.since_ns
            health.errors_in_row += 1
            if health.errors_in_row == FAILING_AFTER:
                health.failing_since_ns = now_ns
            first, count = self._errors.get((io.target, io.direction, errno), (io.offset, 0))
            self._errors[io.target, io.direction, errno] = (first, count + 1)
            self._counts.add_error(io)
            self._epoch.record_error(io)

    def failing(self, target: int) -> bool:
        """Whether a target is only to be probed."""
        return self._health[target].errors_in_row >= FAILING_AFTER

    def counters(self) -> NDArray[np.uint64]:
        """As LoadBackend.counters."""
        with self._lock:
            now_ns = self._clock_ns()
            waiting = [[now_ns - since_ns for since_ns in each] for each in self._since_ns()]
            return np.array([self._row(target, waits_ns) for target, waits_ns in enumerate(waiting)], np.uint64)

    def _row(self, target: int, waits_ns: list[int]) -> tuple[int, ...]:
        read, write = self._counts.rows[target]
        directions = (*read[:LEAST], read[LARGEST], *write[:LEAST], write[LARGEST], read[ERRORS] + write[ERRORS])
        read[LARGEST] = write[LARGEST] = 0
        active = int(target < self.knobs.stripe_width)
        state = (len(waits_ns), active * self.knobs.queue_depth, active, int(self.failing(target)), self._epoch.index)
        open_loop = (0, 0, 0)
        return (*directions, *state, *open_loop, self._health[target].failed_ns + sum(waits_ns))

    def outstanding(self, at_least_s: float = 0.0) -> NDArray[np.uint64]:
        """As LoadBackend.outstanding."""
        with self._lock:
            latest_ns = self._clock_ns() - round(at_least_s * 1e9)
            found = [[since_ns for since_ns in each if since_ns <= latest_ns] for each in self._since_ns()]
        return np.array([(len(each), min(each, default=0)) for each in found], np.uint64)

    def _since_ns(self) -> list[list[int]]:
        """When the outstanding I/Os of each target were issued."""
        found: list[list[int]] = [[] for _ in self._health]
        for call in self._calls:
            found[call.io.target].append(call.since_ns)
        return found

    def cells(self) -> Cells:
        """As LoadBackend.cells."""
        with self._lock:
            taken, self._counts.histogram = self._counts.histogram, Counter()
        return cells_of(taken)

    def slowest(self) -> NDArray[np.uint64]:
        """As LoadBackend.slowest."""
        with self._lock:
            taken, self._slowest = sorted(self._slowest, reverse=True), []
        return np.array([(*place, latency_ns) for latency_ns, *place in taken], np.uint64).reshape(len(taken), 6)

    def errors(self) -> list[tuple[int, str, int, int, int]]:
        """As LoadBackend.errors."""
        with self._lock:
            found = tuple(self._errors.items())
        rows = [(target, ("read", "write")[way], errno, *seen) for (target, way, errno), seen in found]
        return sorted(rows, key=lambda row: -row[4])

    def contents(self) -> NDArray[np.uint64]:
        """As LoadBackend.contents."""
        with self._lock:
            return self._contents.copy()

    def epochs(self) -> list[Epoch]:
        """As LoadBackend.epochs."""
        with self._lock:
            return [epoch.snapshot() for epoch in self._epochs] if self._is_open else []
