"""Statistics of a running load: what is outstanding, what completed, and to which epoch it belongs."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from engine._native import content
from engine.aio.epoch import CpuTimes, Epoch, EpochSnapshot
from engine.aio.plan import Fsyncs, PlannedIo
from engine.aio.tally import READ, WRITE, CellCounter, Slowest, Tally
from engine.backend.protocol import Cells
from engine.job.spec import Knobs

_CHOICE_NS = 10_000_000
"""How often the data of a read is checked."""
FAILING_AFTER = 16
"""Errors in a row after which a target is only probed."""
_CLOSED_LOOP = (0, 0, 0)
"""Skipped arrivals and service times: this engine has no open loop."""


class _TargetStats(Struct):
    """Counters of one target since the start, and what it has outstanding."""

    tallies: tuple[Tally, Tally] = field(default_factory=lambda: (Tally(), Tally()))
    in_flight: int = 0
    errors_in_row: int = 0
    failing_since_ns: int = 0
    called_ns: int = 0
    """Duration of all calls that have returned, of those that failed and of fsyncs too."""

    @property
    def failing(self) -> bool:
        return self.errors_in_row >= FAILING_AFTER

    def failed(self, now_ns: int) -> None:
        """Note an I/O that failed."""
        self.errors_in_row += 1
        if self.errors_in_row == FAILING_AFTER:
            self.failing_since_ns = now_ns

    def answered(self, issued_ns: int) -> None:
        """Note an I/O that succeeded; one issued before the target was found failing says nothing about it."""
        if not self.failing or issued_ns > self.failing_since_ns:
            self.errors_in_row = 0

    def take_row(self, index: int, epoch: Epoch, waited_ns: int) -> tuple[int, ...]:
        """Columns of the raw table load of the target with this index; the peaks are reset.

        Args:
            index: of the target.
            epoch: the present one.
            waited_ns: for how long the calls have been in progress that are now, summed.
        """
        read, write = self.tallies
        outstanding_ns = max(waited_ns + self.called_ns - read.latency_ns - write.latency_ns, 0)
        directions = (
            *(read.ios, read.bytes, read.latency_ns, read.largest_ns),
            *(write.ios, write.bytes, write.latency_ns, write.largest_ns),
        )
        read.largest_ns = write.largest_ns = 0
        active = int(index < epoch.knobs.stripe_width)
        state = (self.in_flight, active * epoch.knobs.queue_depth, active, int(self.failing), epoch.index)
        return (*directions, read.errors + write.errors, *state, *_CLOSED_LOOP, outstanding_ns)


class RunStats:
    """Owns all statistics of one run; every member may be called from any thread."""

    def __init__(self, targets: int, knobs: Knobs, cpu: Callable[[], CpuTimes] = lambda: (0, 0, 0, None)) -> None:
        self._cpu = cpu
        self._fsyncs = Fsyncs(targets)
        self._contents = np.zeros((targets, 3), np.uint64)
        self._next_choice_ns = 0
        self._lock = threading.Lock()
        self._targets = [_TargetStats() for _ in range(targets)]
        self._cells = CellCounter()
        self._slowest = Slowest()
        self._errors: dict[tuple[int, int, int], tuple[int, int]] = {}
        self._outstanding = 0
        self._older_outstanding = 0
        self._epochs = [Epoch(0, knobs, 0, targets, cpu)]
        self._opened = False
        self._begun: dict[int, tuple[int, int]] = {}
        self._numbers = itertools.count()

    @property
    def _epoch(self) -> Epoch:
        return self._epochs[-1]

    @property
    def knobs(self) -> Knobs:
        """The knobs in force."""
        return self._epoch.knobs

    def open(self, now_ns: int) -> None:
        """Note when the load starts."""
        with self._lock:
            self._epoch.turned_ns = self._epoch.opened_ns = now_ns
            self._opened = True

    def turn(self, knobs: Knobs, now_ns: int) -> int:
        """Close the present epoch and open the next; what is outstanding belongs to neither.

        Before the load is open the knobs are those of epoch 0.
        """
        with self._lock:
            if not self._opened:
                self._epochs = [Epoch(0, knobs, 0, len(self._targets), self._cpu)]
                return 0
            self._epoch.end(now_ns)
            self._older_outstanding += self._outstanding
            self._outstanding = 0
            next_epoch = Epoch(self._epoch.index + 1, knobs, now_ns, len(self._targets), self._cpu)
            if self._epoch.opened_ns is None or _is_direct(knobs) != _is_direct(self._epoch.knobs):
                next_epoch.opened_ns = None
            self._epochs.append(next_epoch)
            return self._epoch.index

    @property
    def waits(self) -> bool:
        """Whether nothing may be issued until all I/Os of epochs before have completed.

        Direct and cached writes in flight together collide in the kernel, which then fails one with EIO
        (mm/filemap.c: dio_warn_stale_pagecache).
        """
        return self._epoch.opened_ns is None

    def settled_and_waiting(self) -> Epoch | None:
        """Return the present epoch, if it waits and no older I/O is outstanding any more."""
        with self._lock:
            return self._epoch if self.waits and not self._older_outstanding else None

    def open_epoch(self, epoch: Epoch, now_ns: int) -> None:
        """Let an epoch's I/Os be issued, unless another was opened since."""
        with self._lock:
            if epoch is self._epoch:
                epoch.opened_ns = now_ns

    def close(self, now_ns: int) -> None:
        """Close the last epoch: what completes from now on is transient."""
        with self._lock:
            self._epoch.end(now_ns)

    def settle(self, now_ns: int) -> None:
        """Start measuring once the settling time is over and all older I/Os are done."""
        with self._lock:
            if not self._older_outstanding and self._epoch.end_ns is None:
                self._epoch.begin(now_ns)

    def issue(self, target: int, knobs: Knobs) -> int | None:
        """Note one I/O as outstanding; returns its epoch, or None if its knobs are no longer in force."""
        with self._lock:
            if knobs is not self._epoch.knobs or self.waits:
                return None
            self._outstanding += 1
            self._targets[target].in_flight += 1
            return self._epoch.index

    def complete(self, epoch: int, target: int, io: PlannedIo, latency_ns: int, now_ns: int, *, issued_ns: int) -> None:
        """Count one I/O that succeeded; its result may be seen much later than `latency_ns` after it was issued."""
        with self._lock:
            self._return(epoch, target)
            self._targets[target].answered(issued_ns)
            if io.is_fsync:
                self._epoch.record_fsync(target, latency_ns)
                return
            if io.direction == WRITE:
                self._fsyncs.wrote(target, self._epoch.knobs.fsync_every)
            self._targets[target].tallies[io.direction].add(io.length, latency_ns)
            self._cells.add(target, io.direction, latency_ns)
            self._slowest.offer((latency_ns, target, io.direction, io.offset, io.length, now_ns - latency_ns))
            self._epoch.record(target, io.direction, io.length, latency_ns, now_ns)

    def fail(self, epoch: int, target: int, io: PlannedIo, errno: int, now_ns: int) -> None:
        """Count one I/O that failed; errno 0 is a short transfer."""
        with self._lock:
            self._return(epoch, target)
            self._targets[target].failed(now_ns)
            self._targets[target].tallies[io.direction].errors += 1
            self._note_error(target, io.direction, errno, io.offset)
            self._epoch.record_error(target, io.direction)

    def fail_write_back(self, target: int, errno: int) -> None:
        """Count cached writes of a target that did not reach the medium."""
        with self._lock:
            self._note_error(target, WRITE, errno, 0)

    def _note_error(self, target: int, direction: int, errno: int, offset: int) -> None:
        first, count = self._errors.get((target, direction, errno), (offset, 0))
        self._errors[target, direction, errno] = (first, count + 1)

    def _return(self, epoch: int, target: int) -> None:
        self._targets[target].in_flight -= 1
        if epoch == self._epoch.index:
            self._outstanding -= 1
        else:
            self._older_outstanding -= 1

    @contextmanager
    def waiting(self, target: int) -> Iterator[None]:
        """Note that a call on a target is in progress while the block runs."""
        number = next(self._numbers)
        with self._lock:
            self._begun[number] = target, time.monotonic_ns()
        try:
            yield
        finally:
            with self._lock:
                _, since_ns = self._begun.pop(number)
                self._targets[target].called_ns += time.monotonic_ns() - since_ns

    def outstanding(self, at_least_s: float) -> NDArray[np.uint64]:
        """Count calls in progress for so long, with the moment the oldest began: shape (targets, 2)."""
        latest_ns = time.monotonic_ns() - round(at_least_s * 1e9)
        found: list[list[int]] = [[] for _ in self._targets]
        with self._lock:
            for target, since_ns in self._begun.values():
                if since_ns <= latest_ns:
                    found[target].append(since_ns)
        return np.array([(len(since_ns), min(since_ns, default=0)) for since_ns in found], np.uint64)

    def take_fsync(self, target: int) -> bool:
        """Take one fsync to be issued, if one is due."""
        with self._lock:
            return self._fsyncs.take(target, self._epoch.knobs.fsync_every)

    def choose(self, now_ns: int) -> bool:
        """Whether a read that is issued now is to be checked when it completes; true once an interval.

        Chosen when issued: slow reads would nearly always be the first to complete after a given time.
        """
        with self._lock:
            due = now_ns >= self._next_choice_ns
            if due:
                self._next_choice_ns = now_ns + _CHOICE_NS
            return due

    def judge(self, target: int, data: bytes) -> None:
        """Check the data of a read."""
        kind = content(data)
        with self._lock:
            self._contents[target] += np.array((1, kind == "compressible", kind == "zeros"), np.uint64)

    def contents(self) -> NDArray[np.uint64]:
        """Shape (targets, 3): reads that were judged, those compressible, those all zeros."""
        with self._lock:
            return self._contents.copy()

    def failing(self, target: int) -> bool:
        """Whether a target is only to be probed."""
        return self._targets[target].failing

    def counters(self) -> NDArray[np.uint64]:
        """Columns as the raw table load, shape (targets, 18); takes the peaks."""
        with self._lock:
            waited_ns, now_ns = [0] * len(self._targets), time.monotonic_ns()
            for target, since_ns in self._begun.values():
                waited_ns[target] += now_ns - since_ns
            rows = [target.take_row(index, self._epoch, waited_ns[index]) for index, target in enumerate(self._targets)]
        return np.array(rows, np.uint64)

    def cells(self) -> Cells:
        """Histogram cells since the last call."""
        with self._lock:
            taken, self._cells = self._cells, CellCounter()
        return taken.cells()

    def slowest(self) -> NDArray[np.uint64]:
        """Slowest I/Os since the last call, columns as the raw table slow_load."""
        with self._lock:
            return self._slowest.take()

    def errors(self) -> list[tuple[int, str, int, int, int]]:
        """Target, direction, errno, first offset and count, the most frequent first."""
        names = {READ: "read", WRITE: "write"}
        with self._lock:
            rows = [(target, names[way], code, *seen) for (target, way, code), seen in self._errors.items()]
        return sorted(rows, key=lambda row: -row[4])

    def epochs(self) -> list[EpochSnapshot]:
        """All epochs so far, none before the load is open."""
        with self._lock:
            return [epoch.snapshot() for epoch in self._epochs] if self._opened else []


def _is_direct(knobs: Knobs) -> bool:
    return knobs.mode.is_direct
