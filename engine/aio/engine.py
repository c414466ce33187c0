"""The asyncio engine behind engine.backend.protocol.LoadBackend."""

from __future__ import annotations

import functools
import os
import threading
import time
import weakref
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine._native import host_cpu_ns
from engine.aio.epoch import CpuTimes, EpochSnapshot
from engine.aio.limits import MAX_OUTSTANDING, AioTarget, check_knobs, own_descriptor
from engine.aio.loop import CallPool, SlotLoop, run_loop
from engine.aio.plan import Plan
from engine.aio.run_stats import RunStats
from engine.aio.slot import OpenFiles
from engine.aio.tally import CellCounter
from engine.backend.protocol import Cells
from engine.job.spec import Knobs


class AioEngine:
    """Tasks of an event loop in a thread of its own that keep `queue_depth` I/Os outstanding on each target.

    It has the members of engine._native.LoadEngine, with the same meaning, and a small part of its speed: every I/O
    runs in a thread of an executor, and its latency includes both switches.
    """

    def __init__(
        self,
        targets: Sequence[AioTarget],
        knobs: Knobs,
        *,
        sequential: bool = False,
        stripe_unit_bytes: int = 65536,
        seed: int = 1,
        max_queue_depth: int = MAX_OUTSTANDING,
        runtime_s: float | None = None,
    ) -> None:
        """Duplicate the descriptors; nothing is issued before `start`.

        Raises:
            ValueError: a knob is out of range for the targets.
            OSError: no descriptor is left.
        """
        check_knobs(knobs, targets, max_queue_depth, stripe_unit_bytes)
        self._targets = tuple(targets)
        self._max_queue_depth = max_queue_depth
        self._stripe_unit_bytes = stripe_unit_bytes
        plan = Plan([target.size_bytes for target in targets], stripe_unit_bytes, seed, sequential=sequential)
        self._fds = [own_descriptor(target) for target in targets]
        self._files = OpenFiles(self._fds, targets)
        self._pool = CallPool(MAX_OUTSTANDING)
        self._stats = RunStats(len(targets), knobs, functools.partial(_cpu_times, self._pool))
        self._stopping = threading.Event()
        self._broken: list[Exception] = []
        # The thread must not hold the engine, so that one that is dropped ends, as the native ones do.
        self._loop = loop = SlotLoop(self._files, plan, self._stats, self._pool, self._stopping, runtime_s=runtime_s)
        work = (loop, self._pool, self._fds, self._broken)
        # Not a daemon: the interpreter waits for it at exit, rather than to cut it off with I/Os in flight.
        self._thread = threading.Thread(target=_run, args=work, name="lunscope-aio", daemon=False)
        weakref.finalize(self, self._stopping.set)

    @property
    def running(self) -> bool:
        """Whether I/Os are still issued."""
        return self._thread.is_alive() and not self._stopping.is_set()

    @property
    def done(self) -> bool:
        """Whether it ended by the bytes transferred, which it never does."""
        return False

    @property
    def waits(self) -> bool:
        """Whether nothing is issued yet in the open epoch, as older I/Os must complete first."""
        return self._stats.waits

    @property
    def fault(self) -> str:
        """Why the load ended by itself, empty if it did not."""
        return f"the aio engine broke: {self._broken[0]!r}" if self._broken else ""

    @property
    def features(self) -> list[str]:
        """What it is made of."""
        reads_only = any(not target.writable for target in self._targets)
        return ["asyncio", "aiofiles", *(["read_only_files"] if reads_only else [])]

    def start(self) -> None:
        """Start the event loop; epoch 0 opens.

        Raises:
            ValueError: it was stopped before.
        """
        if self._stopping.is_set():
            raise ValueError("the load was stopped before")
        self._stats.open(time.monotonic_ns())
        self._thread.start()

    def end_after(self, runtime_s: float | None) -> None:
        """End the load so long after its start and not when was said before; None: by nothing but `stop`."""
        self._loop.runtime_s = runtime_s

    def apply(self, knobs: Knobs) -> int:
        """Turn to new knobs and return the index of the epoch this opens; the event loop checks every 10 ms.

        Raises:
            ValueError: a knob is out of range, and the load keeps the old ones; or the load has ended.
            OSError: a target takes no direct I/O, and the load keeps the old ones.
        """
        if self._stopping.is_set():
            raise ValueError("the load has ended")
        check_knobs(knobs, self._targets, self._max_queue_depth, self._stripe_unit_bytes)
        direct = knobs.mode.is_direct
        if direct:
            self._files.check_direct()
        if self._thread.ident is None:
            self._files.turn(direct=direct)
        return self._stats.turn(knobs, time.monotonic_ns())

    def counters(self) -> NDArray[np.uint64]:
        """Shape (targets, 18), columns as the raw table load; takes the peaks."""
        return self._stats.counters()

    def cells(self) -> Cells:
        """Histogram cells of I/Os completed since the last call."""
        return self._stats.cells()

    def path_counters(self) -> NDArray[np.uint64]:
        """No rows: no target has several paths here."""
        return np.zeros((0, 12), np.uint64)

    def logical_counters(self) -> NDArray[np.uint64]:
        """All 0: only parts are measured here."""
        return np.zeros(9, np.uint64)

    def logical_cells(self) -> Cells:
        """None: only parts are measured here."""
        return CellCounter().cells()

    def slowest(self) -> NDArray[np.uint64]:
        """Slowest I/Os since the last call, slowest first: shape (n, 6), as the raw table slow_load begins."""
        return self._stats.slowest()

    def errors(self) -> list[tuple[int, str, int, int, int]]:
        """Target, direction, errno, offset of the first and count, the most frequent first."""
        return self._stats.errors()

    def epochs(self) -> list[EpochSnapshot]:
        """All epochs so far, the last one open while running."""
        return self._stats.epochs()

    def contents(self) -> NDArray[np.uint64]:
        """Shape (targets, 3): reads that were sampled, those compressible, those all zeros."""
        return self._stats.contents()

    def cpu_ns(self) -> int:
        """CPU time of the event loop and the executor."""
        return self._pool.cpu_ns()

    def outstanding(self, at_least_s: float = 0.0) -> NDArray[np.uint64]:
        """Count I/Os outstanding for so long, with the moment the oldest began, or 0: shape (targets, 2)."""
        return self._stats.outstanding(at_least_s)

    def drain(self, timeout_s: float) -> bool:
        """Stop issuing and wait for what is outstanding, at most so long; whether all completed."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        if self._thread.is_alive():
            # The event loop does so too, unless it waits for cached data to be written back.
            self._stats.close(time.monotonic_ns())
            return False
        return True

    def stop(self, timeout_s: float = 10.0) -> bool:
        """Stop issuing, wait for what is outstanding, join; whether all completed in time.

        Threads whose I/O does not return keep their descriptors and delay the exit of the interpreter.
        """
        if not self.drain(timeout_s):
            return False
        _release(self._pool, self._fds)
        return True


def _cpu_times(pool: CallPool) -> CpuTimes:
    return pool.cpu_ns(), *host_cpu_ns(), pool.waited_ns()


def _run(loop: SlotLoop, pool: CallPool, fds: list[int], broken: list[Exception]) -> None:
    with pool.counted():
        error = run_loop(loop)
    if error is not None:
        broken.append(error)
    _release(pool, fds)


def _release(pool: CallPool, fds: list[int]) -> None:
    pool.close()
    while fds:
        os.close(fds.pop())
