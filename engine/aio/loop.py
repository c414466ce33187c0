"""The event loop that keeps every slot busy, and the threads in which its blocking calls run."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from engine.aio.plan import FLUSHES, Plan, PlannedIo
from engine.aio.run_stats import RunStats
from engine.aio.slot import WRITE_FLAGS, OpenFiles, Slot
from engine.aio.tally import READ
from engine.job.spec import Knobs


class CallPool:
    """An executor that lists its threads, so that their CPU time can be read."""

    def __init__(self, max_threads: int) -> None:
        self.executor = ThreadPoolExecutor(max_threads, thread_name_prefix="lunscope-aio", initializer=self._enter)
        self._lock = threading.Lock()
        self._clocks: list[int] = []
        self._finished_ns = 0
        self._threads: list[int] = []
        self._finished_wait_ns: int | None = 0

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count the calling thread's CPU time too, until it leaves the block."""
        clock, thread = self._enter()
        try:
            yield
        finally:
            with self._lock:
                self._clocks.remove(clock)
                self._threads.remove(thread)
                self._finished_ns += time.clock_gettime_ns(clock)
                self._finished_wait_ns = _added(self._finished_wait_ns, [thread])

    def _enter(self) -> tuple[int, int]:
        clock, thread = time.pthread_getcpuclockid(threading.get_ident()), threading.get_native_id()
        with self._lock:
            self._clocks.append(clock)
            self._threads.append(thread)
        return clock, thread

    def cpu_ns(self) -> int:
        """CPU time used by the calls so far."""
        with self._lock:
            return self._finished_ns + sum(map(_used_ns, self._clocks))

    def waited_ns(self) -> int | None:
        """How long the threads were ready and waited for a processor; None where the kernel does not count it."""
        with self._lock:
            return _added(self._finished_wait_ns, self._threads)

    def close(self) -> None:
        """Join the threads; their CPU time and waits stay known."""
        with self._lock:
            self._finished_ns += sum(map(_used_ns, self._clocks))
            self._finished_wait_ns = _added(self._finished_wait_ns, self._threads)
            self._clocks.clear()
            self._threads.clear()
        self.executor.shutdown()


def _added(waited_ns: int | None, threads: Iterable[int]) -> int | None:
    """Add the waits of threads on a run queue: the second number of schedstat (sched-stats.rst of the kernel)."""
    for thread in threads:
        try:
            waited_ns = (
                None
                if waited_ns is None
                else waited_ns + int(Path(f"/proc/self/task/{thread}/schedstat").read_text(encoding="ascii").split()[1])
            )
        except (OSError, ValueError, IndexError):
            return None
    return waited_ns


def _used_ns(clock: int) -> int:
    """CPU time of a thread; 0 of one that has ended at interpreter exit and has no clock any more (EINVAL)."""
    try:
        return time.clock_gettime_ns(clock)
    except OSError:
        return 0


_POLL_S = 0.02
"""How long a waiting I/O sleeps before it checks for a new rate: well within the 50 ms of a knob turn."""
_SECOND_NS = 1_000_000_000


class RatePace:
    """Returns times at which I/Os may start, one every 1/rate seconds over all targets."""

    def __init__(self, clock_ns: Callable[[], int]) -> None:
        self._clock_ns = clock_ns
        self._rate_iops: float | None = None
        self._next_ns = 0

    def set_rate(self, rate_iops: float | None) -> None:
        """Set the limit; those who wait for a moment of another rate take one of the new."""
        if rate_iops != self._rate_iops:
            self._rate_iops = rate_iops
            self._next_ns = self._clock_ns()

    async def take(self, wanted: Callable[[], bool]) -> bool:
        """Wait for the next free moment; False if the I/O is no longer wanted by then."""
        rate_iops, moment_ns = self._reserve()
        while (wait_s := (moment_ns - self._clock_ns()) / _SECOND_NS) > 0:
            await asyncio.sleep(min(wait_s, _POLL_S))
            if not wanted():
                return False
            if rate_iops != self._rate_iops:
                rate_iops, moment_ns = self._reserve()
        return True

    def _reserve(self) -> tuple[float | None, int]:
        if self._rate_iops is None:
            return None, 0
        moment_ns = max(self._next_ns, self._clock_ns())
        self._next_ns = moment_ns + round(_SECOND_NS / self._rate_iops)
        return self._rate_iops, moment_ns


_TICK_S = 0.01
_PROBE_S = 0.1
_BLOCKED_S = 0.001


class SlotLoop:
    """Tasks, one per outstanding I/O, started and ended with queue depth and stripe width."""

    def __init__(
        self,
        files: OpenFiles,
        plan: Plan,
        stats: RunStats,
        pool: CallPool,
        stopping: threading.Event,
        *,
        runtime_s: float | None,
    ) -> None:
        self.runtime_s = runtime_s
        self._files = files
        self._plan = plan
        self._stats = stats
        self._pool = pool
        self._stopping = stopping
        self._pace = RatePace(time.monotonic_ns)
        self._tasks: dict[tuple[int, int], asyncio.Task[None]] = {}

    async def drive(self) -> None:
        """Run until stopped or the runtime is over; returns when the last I/O has completed."""
        started_s = time.monotonic()
        try:
            while self._goes_on(started_s):
                self._pace.set_rate(self._stats.knobs.rate_iops)
                self._fill_slots()
                await self._open_settled()
                self._stats.settle(time.monotonic_ns())
                await asyncio.sleep(_TICK_S)
        finally:
            self._stopping.set()
            self._stats.close(time.monotonic_ns())
            # Every result is read: when the interpreter exits, every task fails, and asyncio prints what is not read.
            ends = await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        for end in ends:
            if end is not None:
                raise end

    def _goes_on(self, started_s: float) -> bool:
        """Whether to issue more; the interpreter takes the executor away when the main thread has ended."""
        runtime_s = self.runtime_s
        over = runtime_s is not None and time.monotonic() - started_s >= runtime_s
        return not over and not self._stopping.is_set() and threading.main_thread().is_alive()

    async def _open_settled(self) -> None:
        """Turn the mode for an epoch that waits for it, once nothing is outstanding."""
        epoch = self._stats.settled_and_waiting()
        if epoch is None:
            return
        direct = epoch.knobs.mode.is_direct
        if direct:
            await asyncio.get_running_loop().run_in_executor(self._pool.executor, self._write_back)
        self._files.turn(direct=direct)
        self._stats.open_epoch(epoch, time.monotonic_ns())

    def _write_back(self) -> None:
        for target, errno in self._files.write_back(self._stats.waiting):
            self._stats.fail_write_back(target, errno)

    def _fill_slots(self) -> None:
        knobs = self._stats.knobs
        for target in range(knobs.stripe_width):
            for slot_number in range(knobs.queue_depth):
                task = self._tasks.get((target, slot_number))
                if task is not None and not task.done():
                    continue
                if task is not None:
                    task.result()
                self._tasks[target, slot_number] = asyncio.create_task(self._keep_busy(target, slot_number))

    def _wanted(self, target: int, slot_number: int) -> bool:
        knobs = self._stats.knobs
        return not self._stopping.is_set() and target < knobs.stripe_width and slot_number < knobs.queue_depth

    async def _keep_busy(self, target: int, slot_number: int) -> None:
        slot = Slot(self._files.fds[target], f"{target}/{slot_number}", self._pool.executor)
        while self._wanted(target, slot_number):
            if self._stats.waits:
                await asyncio.sleep(_BLOCKED_S)
                continue
            if self._stats.failing(target):
                await asyncio.sleep(_PROBE_S)
                if slot_number:
                    continue
            knobs = self._stats.knobs
            self._plan.enter(knobs)
            io = FLUSHES[knobs.flush] if self._stats.take_fsync(target) else self._plan.take(target)
            if io is not None:
                await self._issue(target, slot, io, knobs)
            elif self._plan.blocked(knobs, self._stats.failing):
                await asyncio.sleep(_BLOCKED_S)
            elif await self._pace.take(lambda: self._wanted(target, slot_number)):
                # Planned with the knobs of the moment, which may have been turned while it waited.
                knobs = self._stats.knobs
                self._plan.enter(knobs)
                self._plan.draw(target, knobs, self._stats.failing)

    async def _issue(self, target: int, slot: Slot, io: PlannedIo, knobs: Knobs) -> None:
        epoch = self._stats.issue(target, knobs)
        if epoch is None:
            return
        issued_ns = time.monotonic_ns()
        chosen = io.direction == READ and self._stats.choose(issued_ns)
        try:
            with self._stats.waiting(target):
                moved, latency_ns = await slot.transfer(io, WRITE_FLAGS[knobs.mode])
        except OSError as error:
            self._stats.fail(epoch, target, io, error.errno or 0, time.monotonic_ns())
            return
        if moved != io.length:
            self._stats.fail(epoch, target, io, 0, time.monotonic_ns())
            return
        self._stats.complete(epoch, target, io, latency_ns, time.monotonic_ns(), issued_ns=issued_ns)
        if chosen:
            self._stats.judge(target, slot.head(io.length))


def run_loop(loop: SlotLoop) -> Exception | None:
    """Run an event loop in the calling thread until the load ends; returns what broke it, if anything did."""
    try:
        asyncio.run(loop.drive())
    except Exception as error:  # nothing above a thread could catch it
        return error
    return None
