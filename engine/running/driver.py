"""One run of the load, from its targets to its result."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from engine._native import VerifyPass
from engine.backend.protocol import EpochStats
from engine.background_call import BackgroundCall
from engine.errors import LunscopeError, StoppedError, UsageError
from engine.guard import UseMonitor, recheck_targets
from engine.job.knobs import Knobs, engine_refusal
from engine.job.spec import JobSpec, Permissions
from engine.job.validate import validate
from engine.replacing import replace
from engine.running.counter_reader import LayoutCounters
from engine.running.cpus import started_on
from engine.running.knob_turns import KnobState
from engine.running.observed_run import ObservedRun
from engine.running.prepared_run import Beside, PreparedRun, set_up
from engine.running.select import deepest
from engine.running.stall_watch import WaitLimit
from engine.running.supervisor import RateWatch
from engine.verify.passing import PassResult
from engine.verify.run_result import final_passes

_TURN_S = 0.2
"""How long a turn of the knobs may hold up the end once wait_limit is over."""
_CLOSE_S = 0.3
"""How long closing may take where there is no wait_limit."""


class LoadDriver(ObservedRun):
    """Drives one job once.

    `prepare`, `start` and `stop` are called by one owner in this order; everything else from any thread.
    """

    def __init__(
        self,
        job: JobSpec,
        permissions: Permissions,
        run_number: int = 1,
        knobs: KnobState | None = None,
        beside: Beside | None = None,
    ) -> None:
        super().__init__(job, KnobState(job.knobs) if knobs is None else knobs, run_number)
        self._permissions = permissions
        self._beside = beside
        self._rechecked = False
        self._monitor = UseMonitor()
        self._stop_requested = threading.Event()
        self._hurried = threading.Event()
        self._cached_writes = False

    def prepare(self, progress: Callable[[float], None]) -> None:
        """Open and check the targets, fill scratch files, set up the engine; blocks.

        Raises:
            UsageError: the job cannot be meant.
            RefusedError: the guard refuses a target.
            StoppedError: `request_stop` was called.
            LunscopeError: the disk is full, or the kernel refuses what the engine needs.
        """
        validate(self._job)
        prepared_run = set_up(
            self._job, self._permissions, progress, self._stop_requested, self._waits, beside=self._beside
        )
        self._keys = tuple(f"load:{self._run_number}:{index}" for index in range(len(prepared_run.names)))
        self._layout = LayoutCounters(prepared_run.engine, self._keys, prepared_run.path_names)
        self._devices = prepared_run.devices()
        self._prepared_run = prepared_run

    def recheck(self) -> None:
        """Check the targets once more, so that `start`, which follows at once, need not.

        Raises:
            RefusedError: a target changed since it was opened.
        """
        prepared_run = self._prepared()
        recheck_targets(prepared_run.targets, self._waits)
        self._rechecked = True

    def start(self) -> None:
        """Check the targets once more and start; does nothing if it runs.

        Raises:
            LunscopeError: a target changed since it was opened, or the engine cannot take the knobs.
        """
        with self._knobs.turning:
            if self._started_ns is not None:
                return
            prepared_run, knobs = self._prepared(), self._knobs.knobs
            prepared_run.require_writable(knobs)
            if not self._rechecked:
                recheck_targets(prepared_run.targets, self._waits)
            if self._stop_requested.is_set():
                raise StoppedError("stopped before the load began")
            self._note_mode(knobs)
            if knobs != self._job.knobs:
                _apply(prepared_run, knobs)
            if knobs.read_pct < 100:
                prepared_run.keep_journals()
            self._started_ns = time.monotonic_ns()
            self._knobs.begin()
            prepared_run.engine.start()
            for target in prepared_run.targets:
                target.begin()

    def end_after(self, runtime_s: float | None) -> None:
        """End a time after the start, not after the runtime of the job; None: only `stop` ends it."""
        prepared_run = self._prepared_run
        if prepared_run is not None:
            prepared_run.engine.end_after(runtime_s)

    def check_depth(self, knobs: Knobs) -> None:
        """Refuse a depth above what the engine allocated at its start.

        Raises:
            UsageError: it is deeper.
        """
        most = deepest(self._job)
        if knobs.queue_depth > most:
            raise UsageError(
                f"--qd: {knobs.queue_depth} is out of range: 1 to {most} in a load that began with "
                f"{self._job.knobs.queue_depth}: stop it, and start with more"
            )

    def turn(self, knobs: Knobs) -> int | None:
        """Turn to new knobs, which were checked; the caller holds `KnobState.turning`.

        Returns:
            The epoch this opens, None while nothing runs (the start takes them).

        Raises:
            UsageError: the targets do not take them; the old ones stay.
            RefusedError: a target that would be written is not open for writing, or changed.
        """
        self._note_mode(knobs)
        epoch = self._turn_live(self._prepared(), knobs) if self.running else None
        self._knobs.put(knobs, epoch)
        return epoch

    def turned_ns(self, epoch: int) -> int | None:
        """CLOCK_MONOTONIC of the turn that opened an epoch; None if it has not begun, or the load has ended.

        A thread that turned may run again only milliseconds after the workers have the new knobs.
        """
        prepared_run = self._prepared_run
        epochs: Sequence[EpochStats] = () if prepared_run is None else prepared_run.engine.epochs()
        return next((each.turned_ns for each in reversed(epochs) if each.index == epoch), None)

    def _turn_live(self, prepared_run: PreparedRun, knobs: Knobs) -> int:
        written, before = prepared_run.require_writable(knobs), self._knobs.knobs
        if before.read_pct >= 100 or knobs.stripe_width > before.stripe_width:
            recheck_targets(written, self._waits)
        if written:
            prepared_run.keep_journals()
        with started_on(self._job.cpus):
            return _apply(prepared_run, knobs)

    def request_stop(self) -> None:
        """Make `prepare` return soon; a running engine continues until `stop`."""
        self._stop_requested.set()

    def hurry(self) -> None:
        """End the final pass of a verified load, if one is being made; from any thread."""
        self._hurried.set()

    def stop(
        self,
        ended: str = "stopped",
        final_pass: Callable[[float], None] | None = None,
        wait_limit: WaitLimit | None = None,
    ) -> bool:
        """Stop issuing, wait for what is outstanding while wait_limit lasts, remove scratch files.

        `ended` says why, for the result. A verified load reads back what it wrote if `final_pass` is given; that is
        called with the share done. May be called twice.

        Returns:
            Whether all I/Os completed and everything is closed.
        """
        self.request_stop()
        self._monitor.stop()
        wait_limit = wait_limit or WaitLimit()
        if not wait_limit.limited:
            wait_limit.limit(self._job.give_up_s)
        # A turn that hangs must not hold up the end.
        turning = self._knobs.turning.acquire(timeout=min(wait_limit.left_s + _TURN_S, threading.TIMEOUT_MAX))
        try:
            return True if self._prepared_run is None else self._end(self._prepared_run, ended, final_pass, wait_limit)
        finally:
            self._knobs.end()
            if turning:
                self._knobs.turning.release()

    def _end(
        self, prepared_run: PreparedRun, ended: str, final_pass: Callable[[float], None] | None, wait_limit: WaitLimit
    ) -> bool:
        badges = prepared_run.badges(self._knobs.knobs)
        if self._started_ns is not None:
            self._steady.end(prepared_run.counters.peek(), time.monotonic_ns())
        returned = prepared_run.stop(wait_limit)
        closing = BackgroundCall(
            lambda: prepared_run.close(self._waits, cached_writes=self._cached_writes), "lunscope-close"
        )
        closed = wait_limit.wait_for(closing.done) or closing.done.wait(_CLOSE_S)
        if self._started_ns is not None:
            self._ended_ns = time.monotonic_ns()
            passes = self._final_passes(prepared_run, final_pass) if returned and closed else None
            result = self._evaluate(prepared_run, ended, badges, passes)
            # After the counters: what completes in between is in neither, rather than in both.
            self._result = replace(result, outstanding=self.outstanding())
            self._last_reading = self.reading()
        self._never_returned = () if returned else prepared_run.outstanding()
        # The engine has descriptors of its own: scratch space is free once they are closed.
        self._prepared_run = self._layout = None
        if closed:
            closing.result()
        return returned and closed

    def _final_passes(
        self, prepared_run: PreparedRun, progress: Callable[[float], None] | None
    ) -> list[PassResult | None] | None:
        engine = prepared_run.verifying
        if engine is None or progress is None:
            return None

        def begins(target_pass: VerifyPass, name: str) -> None:
            self._pass = target_pass, name

        passes = final_passes(engine, prepared_run.names, progress, self._hurried, self._job.give_up_s, begins=begins)
        if self._pass is not None and not self._pass[0].outstanding()[0]:
            self._pass = None
        return passes

    def _note_mode(self, knobs: Knobs) -> None:
        """Note whether writes may be left in the page cache."""
        self._cached_writes = self._cached_writes or (not knobs.mode.is_direct and knobs.read_pct < 100)

    def observe_steadiness(self, counters: NDArray[np.uint64], now_ns: int) -> None:
        """Take counters of the running load, columns as the raw table load; called periodically by one thread."""
        self._steady.observe(counters, self._knobs.now, now_ns)

    def rate_watch(self) -> RateWatch:
        """Make what watches over the least rate of the job."""
        return RateWatch(self._job.rate_min, self._job.ramp_s, max(self._job.knobs.block_sizes))

    def check_users(self) -> None:
        """Check that nothing else has begun to use what is written to; called periodically by one thread.

        Raises:
            RefusedError: something has; the load must end.
        """
        prepared_run = self._prepared_run
        if prepared_run is None:
            return
        try:
            self._monitor.check(prepared_run.written(self._knobs.knobs))
        except OSError:
            # A stop closes the descriptors meanwhile.
            if prepared_run.engine.running:
                raise


def _apply(prepared_run: PreparedRun, knobs: Knobs) -> int:
    try:
        return prepared_run.engine.apply(knobs)
    except ValueError as error:
        raise UsageError(engine_refusal(str(error))) from error
    except OSError as error:
        raise LunscopeError(f"the knobs stay as they were: {error}") from error
