"""The asyncio engine: the members of engine._native.LoadEngine, in plain Python."""

from __future__ import annotations

import asyncio
import functools
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import aiofiles.os
import numpy as np

from engine._native import host_cpu_ns
from engine.aio.files import MAX_OUTSTANDING, AioTarget, Buffer, check_knobs, own_descriptor
from engine.aio.next_io import READ, WRITE, Plan, PlannedIo
from engine.aio.stats import CpuTimes, Stats, cells_of
from engine.job.spec import Knobs, Mode

_WRITE_FLAGS = {
    **dict.fromkeys((Mode.DIRECT, Mode.BUFFERED), 0),
    **dict.fromkeys((Mode.SYNC, Mode.DIRECT_SYNC), os.RWF_SYNC),
    **dict.fromkeys((Mode.DSYNC, Mode.DIRECT_DSYNC), os.RWF_DSYNC),
}
"""Flags of every write (pwritev2(2)), as O_SYNC cannot be turned on an open descriptor (fcntl(2))."""
_TICK_S = 0.01
_POLL_S = 0.02
"""How long an I/O that waits for its time sleeps before it checks for a new rate."""
_PROBE_S = 0.1
_BLOCKED_S = 0.001
_PAGE = 4096

_pread = aiofiles.os.wrap(os.preadv)
_pwrite = aiofiles.os.wrap(os.pwritev)


class Pace:
    """Lets the I/Os of all targets start 1/rate seconds apart."""

    def __init__(self, rate_iops: Callable[[], float | None]) -> None:
        self._rate_iops = rate_iops
        self._turn = asyncio.Lock()
        self._last_s = 0.0

    async def take(self, wanted: Callable[[], bool]) -> bool:
        """Wait until the next may start; false if it is no longer wanted by then."""
        async with self._turn:
            while wanted():
                rate_iops = self._rate_iops()
                due_s, now_s = self._last_s + (1 / rate_iops if rate_iops else 0.0), time.monotonic()
                if due_s <= now_s:
                    # Who wakes up late does not delay the others, but what the storage held up is not made up for.
                    self._last_s = max(due_s, now_s - _POLL_S)
                    return True
                await asyncio.sleep(min(due_s - now_s, _POLL_S))
        return False


class _Load:
    """Tasks of an event loop, one per outstanding I/O, started and ended with queue depth and stripe width."""

    def __init__(
        self, targets: Sequence[AioTarget], knobs: Knobs, *, unit_bytes: int, seed: int, sequential: bool
    ) -> None:
        self.runtime_s: float | None = None
        self.stopping = threading.Event()
        self.fault = ""
        self.threads = CallThreads(MAX_OUTSTANDING)
        self.stats = stats = Stats(len(targets), knobs, self._cpu_times)
        sizes = [target.size_bytes for target in targets]
        self._plan = Plan(sizes, unit_bytes, seed, stats.failing, sequential=sequential)
        self._fds = [own_descriptor(target) for target in targets]
        self._tasks: dict[tuple[int, int], asyncio.Task[None]] = {}

    def _cpu_times(self) -> CpuTimes:
        used_ns, waited_ns = self.threads.times_ns()
        return used_ns, *host_cpu_ns(), waited_ns

    def run(self) -> None:
        """Drive the load in the calling thread until it ends."""
        self.threads.enter()
        try:
            asyncio.run(self._drive())
        except Exception as error:  # nothing above a thread could catch it
            self.fault = f"the aio engine broke: {error!r}"
        self.release()

    def release(self) -> None:
        """Close threads and descriptors; nothing may be outstanding."""
        self.threads.close()
        while self._fds:
            os.close(self._fds.pop())

    async def _drive(self) -> None:
        started_s, self._pace = time.monotonic(), Pace(lambda: self.stats.knobs.rate_iops)
        try:
            while self._goes_on(started_s):
                self._fill_slots()
                self.stats.settle()
                await asyncio.sleep(_TICK_S)
        finally:
            self.stopping.set()
            self.stats.close()
            # Every result is read: when the interpreter exits, every task fails, and asyncio prints what is not read.
            ends = await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        for end in ends:
            if end is not None:
                raise end

    def _goes_on(self, started_s: float) -> bool:
        """Whether to issue more; the interpreter takes the executor away when the main thread has ended."""
        is_over = self.runtime_s is not None and time.monotonic() - started_s >= self.runtime_s
        return not is_over and not self.stopping.is_set() and threading.main_thread().is_alive()

    def _fill_slots(self) -> None:
        knobs = self.stats.knobs
        for slot in np.ndindex(knobs.stripe_width, knobs.queue_depth):
            task = self._tasks.get(slot)
            if task is None or task.done():
                if task is not None:
                    task.result()
                self._tasks[slot] = asyncio.create_task(self._keep_busy(*slot))

    def _wanted(self, target: int, slot: int) -> bool:
        knobs = self.stats.knobs
        return not self.stopping.is_set() and target < knobs.stripe_width and slot < knobs.queue_depth

    async def _keep_busy(self, target: int, slot: int) -> None:
        """Keep one I/O outstanding on a target for as long as the knobs want this slot."""
        stats, plan, buffer = self.stats, self._plan, Buffer(_PAGE, f"{target}/{slot}")
        while self._wanted(target, slot):
            if stats.failing(target):
                await asyncio.sleep(_PROBE_S)
                if slot:
                    continue
            knobs = stats.knobs
            plan.enter(knobs)
            io = plan.take(target)
            if io is not None:
                if len(buffer) < io.length:
                    buffer = Buffer(io.length, f"{target}/{slot}")
                await self._issue(io, knobs, buffer)
            elif plan.blocked(knobs):
                await asyncio.sleep(_BLOCKED_S)
            elif await self._pace.take(lambda: self._wanted(target, slot)):
                # Planned with the knobs of the moment, which may have been turned while it waited.
                knobs = stats.knobs
                plan.enter(knobs)
                plan.draw(target, knobs)

    async def _issue(self, io: PlannedIo, knobs: Knobs, buffer: Buffer) -> None:
        if io.direction == WRITE:
            buffer.stamp(io)
        call = self.stats.begin(io, knobs)
        if call is None:
            return
        try:
            moved = await self._transfer(io, knobs, buffer)
        except OSError as error:
            self.stats.fail(call, error.errno or 0)
        else:
            if moved == io.length:
                self.stats.end(call, buffer.view(min(moved, _PAGE)))
            else:
                self.stats.fail(call, 0)

    async def _transfer(self, io: PlannedIo, knobs: Knobs, buffer: Buffer) -> int:
        fd, data, executor = self._fds[io.target], [buffer.view(io.length)], self.threads.executor
        if io.direction == READ:
            return await _pread(fd, data, io.offset, executor=executor)
        return await _pwrite(fd, data, io.offset, _WRITE_FLAGS[knobs.mode], executor=executor)


class AioEngine:
    """A load that keeps `queue_depth` I/Os outstanding on each target; each I/O runs in a thread of an executor.

    It has the members of engine._native.LoadEngine, with the same meaning, and a small part of its speed: latencies
    include both switches between threads.
    """

    done = False
    waits = False

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
        self._check = functools.partial(
            check_knobs, targets=targets, max_queue_depth=max_queue_depth, stripe_unit_bytes=stripe_unit_bytes
        )
        self._check(knobs)
        # The thread must not hold the engine, so that one that is dropped ends, as the native ones do.
        self._load = load = _Load(targets, knobs, unit_bytes=stripe_unit_bytes, seed=seed, sequential=sequential)
        weakref.finalize(self, load.stopping.set)
        # Not a daemon: the interpreter waits for it at exit, rather than to cut it off with I/Os in flight.
        self._thread = threading.Thread(target=load.run, name="lunscope-aio", daemon=False)
        self.end_after(runtime_s)
        reads_only = any(not target.writable for target in targets)
        self.features = ["asyncio", "aiofiles", *(["read_only_files"] if reads_only else [])]
        self.counters, self.cells, self.slowest = load.stats.counters, load.stats.cells, load.stats.slowest
        self.errors, self.epochs, self.contents = load.stats.errors, load.stats.epochs, load.stats.contents
        self.outstanding = load.stats.outstanding
        # No target has several paths, and only parts of I/Os are measured.
        self.path_counters = lambda: np.zeros((0, 12), np.uint64)
        self.logical_counters = lambda: np.zeros(9, np.uint64)
        self.logical_cells = lambda: cells_of({})

    @property
    def running(self) -> bool:
        """Whether I/Os are still issued."""
        return self._thread.is_alive() and not self._load.stopping.is_set()

    @property
    def fault(self) -> str:
        """Why the load ended by itself, empty if it did not."""
        return self._load.fault

    def start(self) -> None:
        """Start the event loop; epoch 0 opens.

        Raises:
            ValueError: it was stopped before.
        """
        if self._load.stopping.is_set():
            raise ValueError("the load was stopped before")
        self._load.stats.open()
        self._thread.start()

    def end_after(self, runtime_s: float | None) -> None:
        """End the load a time after its start and not when was said before; None: only `stop` ends it."""
        self._load.runtime_s = runtime_s

    def apply(self, knobs: Knobs) -> int:
        """Turn to new knobs and return the index of the epoch this opens; the event loop checks every 10 ms.

        Raises:
            ValueError: a knob is out of range, and the load keeps the old ones; or the load has ended.
        """
        if self._load.stopping.is_set():
            raise ValueError("the load has ended")
        self._check(knobs)
        if knobs.mode.is_direct != self._load.stats.knobs.mode.is_direct:
            what = "turns direct I/O on or off, which the aio engine does not while it runs"
            raise ValueError(f"mode {knobs.mode} {what}: start it anew, or use the uring or threads engine")
        return self._load.stats.turn(knobs)

    def cpu_ns(self) -> int:
        """CPU time of the event loop and the executor."""
        return self._load.threads.times_ns()[0]

    def drain(self, timeout_s: float) -> bool:
        """Stop issuing and wait for what is outstanding, up to a time; whether all completed."""
        self._load.stopping.set()
        self._load.stats.close()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def stop(self, timeout_s: float = 10.0) -> bool:
        """Stop issuing, wait for what is outstanding, join; whether all completed in time.

        Threads whose I/O does not return keep their descriptors and delay the exit of the interpreter.
        """
        if self.drain(timeout_s):
            self._load.release()
            return True
        return False


class CallThreads:
    """An executor, and the thread of the event loop."""

    def __init__(self, most: int) -> None:
        self.executor = ThreadPoolExecutor(most, thread_name_prefix="lunscope-aio", initializer=self.enter)
        self._clocks: dict[int, int] = {}
        self._ended: tuple[int, int | None] | None = None

    def enter(self) -> None:
        """Count the calling thread until `close`."""
        self._clocks[threading.get_native_id()] = time.pthread_getcpuclockid(threading.get_ident())

    def times_ns(self) -> tuple[int, int | None]:
        """CPU time, and how long threads were ready and waited for a processor; None where that is not counted."""
        if self._ended is not None:
            return self._ended
        used_ns, waited_ns = 0, 0
        for thread, clock in tuple(self._clocks.items()):
            # A thread that ended as the interpreter exits has no clock any more (EINVAL).
            with suppress(OSError):
                used_ns += time.clock_gettime_ns(clock)
                waited_ns += _waited_ns(thread)
        return used_ns, waited_ns if Path("/proc/self/schedstat").exists() else None

    def close(self) -> None:
        """Join the threads of the executor; the times stay known."""
        self._ended = self.times_ns()
        self.executor.shutdown()


def _waited_ns(thread: int) -> int:
    """Wait of a thread on a run queue: the second number of schedstat (sched-stats.rst of the kernel)."""
    return int(Path(f"/proc/self/task/{thread}/schedstat").read_text(encoding="ascii").split()[1])
