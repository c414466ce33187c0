"""One run of the load, from its targets to its result."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from engine._native import VerifyPass
from engine.backend.outstanding import Outstanding, Waits
from engine.background_call import BackgroundCall
from engine.errors import LunscopeError, StoppedError, UsageError
from engine.guard import OpenTarget, UseMonitor, recheck_targets
from engine.job.knobs import Knobs, engine_refusal
from engine.job.spec import JobSpec, Mode, Permissions
from engine.job.validate import validate
from engine.results.badge import Badge
from engine.results.caveats import run_badges
from engine.results.result import EpochResult, ErrorCount, RunResult, nothing_measured
from engine.results.steadiness import steady_badges
from engine.running.beside import Beside
from engine.running.driver_figures import DriverFigures, RunState
from engine.running.knob_state import KnobState
from engine.running.prepared_run import PreparedRun, set_up
from engine.running.rate_watch import RateWatch
from engine.running.select import deepest
from engine.running.stall_watch import WaitLimit
from engine.running.status import LoadReading
from engine.running.steady_watch import SteadyWatch
from engine.verify.passing import PassResult
from engine.verify.run_result import Verified, final_passes

_TURN_S = 0.2
"""How long a turn of the knobs may hold up the end once wait_limit is over."""
_CLOSE_S = 0.3
"""How long closing may take where there is no wait_limit."""


class LoadDriver:
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
        self._job = job
        self._permissions = permissions
        self._run_number = run_number
        self._beside = beside
        self._rechecked = False
        self._knobs = KnobState(job.knobs) if knobs is None else knobs
        self._monitor = UseMonitor()
        self._stop_requested = threading.Event()
        self._hurried = threading.Event()
        self._prepared_run: PreparedRun | None = None
        self._figures: DriverFigures | None = None
        self._devices: tuple[tuple[int, ...], ...] = ()
        self._steady = SteadyWatch(job)
        self._started_ns: int | None = None
        self._ended_ns: int | None = None
        self._result: RunResult | None = None
        self._last_reading: LoadReading | None = None
        self._waits = Waits()
        self._pass: tuple[VerifyPass, str] | None = None
        self._cached_writes = False
        self._never_returned: tuple[Outstanding, ...] = ()

    @property
    def target_names(self) -> tuple[str, ...]:
        """What people call the targets; empty before `prepare`."""
        return () if self._prepared_run is None else self._prepared_run.names

    @property
    def used_bytes(self) -> tuple[int, ...]:
        """How many bytes of each target the job may use; empty before `prepare`."""
        prepared_run = self._prepared_run
        targets = () if prepared_run is None else prepared_run.targets
        return tuple(target.size_bytes - self._job.offset_bytes for target in targets)

    @property
    def device_numbers(self) -> tuple[tuple[int, ...], ...]:
        """Numbers of the devices that every target is or is stored on, all paths of it; empty before `prepare`."""
        return self._devices

    @property
    def backend(self) -> str:
        """The engine taken; empty before `prepare`."""
        return "" if self._prepared_run is None else self._prepared_run.choice.backend.value

    @property
    def notices(self) -> tuple[str, ...]:
        """What a reader of the numbers must know, one line each."""
        return () if self._prepared_run is None else self._prepared_run.notices(self._knobs.knobs)

    @property
    def badges(self) -> tuple[Badge, ...]:
        """What makes the figures less than they seem, by what is known so far."""
        prepared_run = self._prepared_run
        if prepared_run is not None:
            knobs = self._knobs.knobs
            own = prepared_run.badges(knobs) if self._job.stays_awake else prepared_run.live_badges(knobs)
            epochs = self._knobs.now.epoch + 1
            return (*own, *steady_badges(self._steady.found, self._job, wanted=False, epochs=epochs))
        return () if self._result is None else run_badges(self._result)

    @property
    def message(self) -> str:
        """Notices and badges in one line."""
        return "; ".join((*self.notices, *(badge.line for badge in self.badges)))

    @property
    def running(self) -> bool:
        """Whether I/Os are being issued."""
        return self._started_ns is not None and self._prepared_run is not None and self._prepared_run.engine.running

    @property
    def waits(self) -> bool:
        """Whether older I/Os, or dirty pages where the page cache is turned off, hold up those of the new epoch."""
        return self._prepared_run is not None and self._prepared_run.engine.waits

    @property
    def fault(self) -> str:
        """Why the engine ended by itself, empty if it did not or if its runtime was over."""
        return "" if self._prepared_run is None else self._prepared_run.engine.fault

    @property
    def done(self) -> bool:
        """Whether the engine ended by itself because all bytes of the job were transferred."""
        return self._prepared_run is not None and self._prepared_run.engine.done

    @property
    def ending(self) -> str:
        """Why a load without a fault is over: all bytes were transferred, it is steady, or its runtime is over."""
        return "size" if self.done else "steady" if self.ends_steady else "runtime"

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start, up to the end."""
        if self._started_ns is None:
            return 0.0
        return ((self._ended_ns or time.monotonic_ns()) - self._started_ns) / 1e9

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
        self._figures = figures = DriverFigures(self._job, prepared_run, self._run_number)
        self._devices = figures.devices
        self._prepared_run = prepared_run

    def recheck(self) -> None:
        """Check the targets once more, so that `start`, which is to follow at once, need not.

        Raises:
            RefusedError: a target changed since it was opened.
        """
        prepared_run = self._prepared()
        self._recheck(prepared_run, prepared_run.targets)
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
                self._recheck(prepared_run, prepared_run.targets)
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

    def _turn_live(self, prepared_run: PreparedRun, knobs: Knobs) -> int:
        written, before = prepared_run.require_writable(knobs), self._knobs.knobs
        if before.read_pct >= 100 or knobs.stripe_width > before.stripe_width:
            self._recheck(prepared_run, written)
        if written:
            prepared_run.keep_journals()
        return _apply(prepared_run, knobs)

    def _recheck(self, prepared_run: PreparedRun, targets: list[OpenTarget]) -> None:
        """Check once more what is about to be used; this reads all of /proc and may take seconds."""
        with self._waits.on(prepared_run.names[0], "check"):
            recheck_targets(targets)

    def request_stop(self) -> None:
        """Make `prepare` return soon; a running engine continues until `stop`."""
        self._stop_requested.set()

    def hurry(self) -> None:
        """End the final pass of a verified load, if one is being made; from any thread."""
        self._hurried.set()

    def outstanding(self, at_least_s: float = 0.0) -> tuple[Outstanding, ...]:
        """Return what has been outstanding for so long; after it was given up, what never completed."""
        prepared_run, reads = self._prepared_run, self._pass
        own = self._never_returned if prepared_run is None else prepared_run.outstanding(at_least_s)
        ios, since_ns = (0, 0) if reads is None else reads[0].outstanding(at_least_s)
        of_pass = () if reads is None or not ios else (Outstanding(reads[1], ios, since_ns, "read-back"),)
        return (*own, *of_pass, *self._waits.outstanding(at_least_s))

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
            figures = self._prepared_figures()
            result = figures.result(self._state(ended, badges), passes)
            # After the counters: what completes in between is in neither, rather than in both.
            self._result = replace(result, outstanding=self.outstanding())
            self._last_reading = figures.take()
        self._never_returned = () if returned else prepared_run.outstanding()
        # The engine has descriptors of its own: scratch space is free once they are closed.
        self._prepared_run = self._figures = None
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
        self._cached_writes = self._cached_writes or (knobs.mode is not Mode.DIRECT and knobs.read_pct < 100)

    def observe_steadiness(self, counters: NDArray[np.uint64], now_ns: int) -> None:
        """Take counters of the running load, columns as the raw table load; called periodically by one thread."""
        self._steady.observe(counters, self._knobs.now, now_ns)

    @property
    def ends_steady(self) -> bool:
        """Whether the load is to end because it is steady."""
        return self._job.until_steady and self._steady.is_steady

    def damaged_ranges(self) -> int:
        """How many ranges the reads of a verified load found damaged so far."""
        figures = self._figures
        return 0 if figures is None else figures.damaged_ranges()

    def verified(self) -> Verified | None:
        """Gather what a verified load found so far; None for others, and when it is over."""
        figures = self._figures
        return None if figures is None else figures.verified()

    def peek(self) -> NDArray[np.uint64] | None:
        """Counters now, columns as the raw table load, peaks left for `reading`; None while there is no engine."""
        prepared_run = self._prepared_run
        return None if prepared_run is None else prepared_run.counters.peek()

    def rate_watch(self) -> RateWatch:
        """Make what watches over the least rate of the job."""
        return RateWatch(self._job.rate_min, self._job.ramp_s)

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

    def observe_paths(self) -> tuple[NDArray[np.uint64], tuple[str, ...]]:
        """Path counters now, columns as the raw table load_path, and the name of each row; none without paths."""
        figures = self._figures
        return (np.zeros((0, 12), np.uint64), ()) if figures is None else figures.observe_paths(self.elapsed_s)

    def tail(self) -> str:
        """Say what the fan-out of the open epoch costs; empty where no I/O is cut or copied."""
        figures = self._figures
        return "" if figures is None or self._started_ns is None else figures.tail()

    def reading(self) -> LoadReading | None:
        """Take counters, peaks and histogram cells since the last call, and once more after the end; one caller."""
        figures = self._figures
        if figures is not None:
            return figures.take() if self._started_ns is not None else None
        last, self._last_reading = self._last_reading, None
        return last

    def errors(self) -> tuple[ErrorCount, ...]:
        """I/Os that failed so far, the most frequent first."""
        figures = self._figures
        return () if figures is None else figures.errors()

    def result(self) -> RunResult:
        """Everything measured so far."""
        figures, prepared_run = self._figures, self._prepared_run
        if figures is not None and prepared_run is not None and self._started_ns is not None:
            return figures.result(self._state("", prepared_run.badges(self._knobs.knobs)))
        return self._result or nothing_measured(self._job)

    def last_epoch(self) -> EpochResult | None:
        """Everything measured since the last turn of the knobs, or of the last epoch of all; None before the first."""
        figures = self._figures
        if figures is None or self._started_ns is None:
            return None if self._result is None or not self._result.epochs else self._result.epochs[-1]
        return figures.last_epoch(self._started_ns)

    def _state(self, ended: str, badges: tuple[Badge, ...]) -> RunState:
        knobs, started_ns = self._knobs.knobs, self._started_ns or 0
        return RunState(ended, started_ns, self.elapsed_s, knobs, badges, self._steady.found)

    def _prepared_figures(self) -> DriverFigures:
        if self._figures is None:
            raise LunscopeError("the load is not prepared")
        return self._figures

    def _prepared(self) -> PreparedRun:
        if self._prepared_run is None:
            raise LunscopeError("the load is not prepared")
        return self._prepared_run


def _apply(prepared_run: PreparedRun, knobs: Knobs) -> int:
    try:
        return prepared_run.engine.apply(knobs)
    except ValueError as error:
        raise UsageError(engine_refusal(str(error))) from error
    except OSError as error:
        raise LunscopeError(f"the knobs stay as they were: {error}") from error
