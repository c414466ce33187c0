"""The one owner of the load that screens, the recorder and the command line share."""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from engine.backend.outstanding import Outstanding, given_up_text
from engine.errors import LunscopeError, StoppedError, UsageError
from engine.events import Event, EventKind
from engine.job.describe import describe_job
from engine.job.spec import JobSpec, Knobs, Permissions
from engine.replacing import replace
from engine.running.knob_turns import Done, KnobState, KnobTurns
from engine.running.stall_watch import StallWatch, WaitLimit
from engine.running.status import LoadReading, LoadState, LoadStatus, StatusStore

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from engine.results.result import EpochResult, RunResult
    from engine.running.driver import LoadDriver
    from engine.running.prepared_run import Beside

__all__ = ["LoadControl", "LoadReading", "LoadState", "LoadStatus"]

_PATIENCE_S = 0.05
"""How soon a stop gets through to a preparation."""
_GATHER_S = 1.5
"""How long an end that waits no longer may take to gather what is left."""


class LoadControl:
    """At most one load at a time; every member may be called from any thread.

    `arm`, `start` and `stop` block. A thread supervises a running load and ends it when its runtime is over or nothing
    answers any more. I/Os that do not complete are in the status; an end waits for them as long as the job says, or
    until `abandon`.
    """

    def __init__(
        self,
        runs: Iterator[int] | None = None,
        may_write: Callable[[], bool] = lambda: True,
    ) -> None:
        """Make a control.

        Args:
            runs: numbers the loads, where several controls are read together.
            may_write: asked in the thread that fills and starts, between its writes, so that a lease that ended ends
                them however late the thread that watches it runs; a running load is for `stop`.
        """
        self._may_write = may_write
        self._status_store = StatusStore()
        self._operation = threading.Lock()
        """Held while arming, starting or ending a load."""
        self._turns = KnobTurns(KnobState(Knobs()), self._status_store)
        self._driver: LoadDriver | None = None
        self._result: RunResult | None = None
        self._runs = itertools.count(1) if runs is None else runs
        self._ended = threading.Event()
        self._wait_limit = WaitLimit()
        self._watch: StallWatch | None = None
        self._permissions = Permissions()
        """Those of the load armed last."""
        self.failed_before = 0
        """Failed I/Os of loads that another one of the same measurement followed."""

    @property
    def status(self) -> LoadStatus:
        """The current state of the load."""
        driver, status, now = self._driver, self._status_store.status, self._turns.state.now
        if status.job is None:
            return status
        elapsed_s = 0.0 if driver is None else driver.elapsed_s
        return replace(status, job=replace(status.job, knobs=now.knobs), epoch=now.epoch, elapsed_s=elapsed_s)

    def arm(self, job: JobSpec, permissions: Permissions, beside: Beside | None = None) -> None:
        """Prepare a job: open and check its targets, fill scratch files, set up the engine; blocks.

        `beside` is what it has in common with other loads that are to run at the same time.

        Raises:
            StoppedError: `stop` was called meanwhile.
            LunscopeError: what is wrong with the job or its targets; nothing is left behind.
        """
        from engine.running.driver import LoadDriver  # noqa: PLC0415 (slow to import; the first screen comes before any load)

        with self._operation:
            if self._status_store.status.state is LoadState.RUNNING:
                raise UsageError("a load is running: stop it first")
            self._let_go()
            self._ended.clear()
            self._permissions = permissions
            # Each load has its own: a turn of the one before that hangs must not reach this one.
            knobs = KnobState(job.knobs)
            self._driver = driver = LoadDriver(job, permissions, next(self._runs), knobs, beside)
            self._turns = KnobTurns(knobs, self._status_store, driver)
            self._wait_limit = WaitLimit()
            self._watch = StallWatch(driver.outstanding, self._status_store)
            self._status_store.reset(LoadStatus(LoadState.PREPARING, job, progress=0.0))
            try:
                driver.prepare(self._prepared)
            except BaseException as error:
                state = LoadState.IDLE if isinstance(error, StoppedError) else LoadState.FAILED
                self._watch.close()
                self._status_store.change(state=state, message=str(error), progress=None)
                raise
            self._status_store.change(
                state=LoadState.ARMED,
                targets=driver.target_names,
                devices=driver.device_numbers,
                backend=driver.backend,
                progress=None,
                message=driver.message,
                badges=driver.badges,
            )

    def _prepared(self, share: float) -> None:
        self._require_lease()
        self._status_store.change(progress=share)

    def _require_lease(self) -> None:
        if not self._may_write():
            raise StoppedError("stopped: nothing was heard any more of who asked for the load")

    def recheck(self) -> None:
        """Check the targets of what is armed once more, so that `start` begins at once; blocks.

        Raises:
            LunscopeError: nothing is armed, or a target changed since; the load is let go then.
        """
        with self._operation:
            driver = self._driver
            if driver is None or self._status_store.status.state is not LoadState.ARMED:
                raise UsageError("no load is armed: arm one first")
            try:
                driver.recheck()
            except BaseException as error:
                driver.stop()
                self._status_store.change(state=LoadState.FAILED, message=str(error))
                raise

    def start(self) -> None:
        """Start what is armed; does nothing while it runs.

        Raises:
            LunscopeError: nothing is armed, or a target changed since; the load is let go then.
        """
        with self._operation:
            driver, status = self._driver, self._status_store.status
            if status.state is LoadState.RUNNING:
                return
            if driver is None or status.state is not LoadState.ARMED:
                raise UsageError("no load is armed: arm one first")
            try:
                self._require_lease()
                driver.start()
            except BaseException as error:
                driver.stop()
                self._status_store.change(state=LoadState.FAILED, message=str(error))
                self._ended.set()
                raise
            self._status_store.change(
                state=LoadState.RUNNING, backend=driver.backend, message=driver.message, badges=driver.badges
            )
            # Turns of a scenario are timed from the driver's start; threads may take a while to begin after it.
            text = f"load started: {_words(self.status)}"
            self._status_store.note(EventKind.LOAD, text, _facts(self.status), driver.started_ns)
            self._ended.clear()
            threading.Thread(target=self._supervise, args=(driver,), name="lunscope-load", daemon=True).start()

    def begin_anew(self, job: JobSpec, knobs: Knobs, is_ended: Callable[[], bool]) -> None:
        """End the load and start another job, with the permissions of before; blocks.

        Args:
            job: its knobs make room for all that are turned to.
            knobs: what it starts with.
            is_ended: whether nothing is to start any more.

        Raises:
            StoppedError: nothing is.
            LunscopeError: I/Os of before do not complete, or the job cannot be prepared or started; none runs then.
        """
        outstanding = self.stop(verify=False)
        self.failed_before += 0 if self._result is None else self._result.failed_ios
        if outstanding:
            raise LunscopeError(given_up_text(outstanding))
        arm, turn = functools.partial(self.arm, job, self._permissions), functools.partial(self.turn, knobs)
        steps: tuple[Callable[[], None], ...] = (arm, turn, self.start)
        for step in steps:
            if is_ended():
                raise StoppedError("stopped before the load began anew")
            step()

    def end_after(self, runtime_s: float | None) -> None:
        """End the armed or running load a time after its start, not as its job says; None: only `stop` ends it.

        For a load whose steps have lengths of their own, whatever the turns between them take.
        """
        driver = self._driver
        if driver is not None:
            driver.end_after(runtime_s)

    @property
    def opens(self) -> bool:
        """Whether the knobs turned last are not in force yet, as older I/Os or dirty pages hold them up."""
        driver = self._driver
        return driver is not None and driver.waits

    @property
    def knobs(self) -> KnobState:
        """The knobs of the load that runs or is armed, else of the next one."""
        return self._turns.state

    def turn(self, knobs: Knobs) -> None:
        """Turn the knobs of the running load, or of the job that the next start uses; blocks.

        Raises:
            UsageError: a knob is out of range, or there is no job; the old knobs stay.
            RefusedError: a target that would be written may not be.
        """
        self._turns.turn(knobs)

    def request_turn(self, knobs: Knobs, done: Done) -> None:
        """Turn the knobs in a thread of its own, which calls `done` with what was refused; never blocks.

        Raises:
            UsageError: a knob is out of range, or there is no job.
        """
        self._turns.request(knobs, done)

    def part_epoch(self) -> None:
        """Close the epoch of a running load and open another with the same knobs; outstanding I/Os are in neither.

        For what would be measured wrongly otherwise, such as I/Os that complete while the process is stopped.
        """
        self._turns.part_epoch()

    def note_stop(self, seconds: float | None) -> None:
        """Add an event: the whole process was stopped (Ctrl-Z) for a time; None if it was stopped without warning."""
        if seconds is None:
            text = "continued after SIGSTOP: the latency of I/Os outstanding then includes the stop"
        else:
            text = f"suspended for {seconds:.1f} s: no sample was taken and no I/O issued"
        self._status_store.note(EventKind.MONITOR, text, {"suspended_s": seconds})

    def note_load(self, text: str, data: Mapping[str, str | float | None]) -> None:
        """Add an event about what is done with the load, such as a point of a sweep."""
        self._status_store.note(EventKind.LOAD, text, data)

    def stop(self, *, verify: bool = True, give_up_s: float | None = None) -> tuple[Outstanding, ...]:
        """End what runs, or release what is armed or being prepared; blocks until scratch files are removed.

        A verified load is read back then if `verify` says so; a stop during that ends it. I/Os that do not complete
        are waited for as long as the job says, or `give_up_s` if that is shorter; this limits the whole call, plus
        a second to collect what is left.

        Returns:
            What is still outstanding; only the kernel holds it, and nothing of it keeps this process from ending but a
            thread that the kernel does not let go.
        """
        self._limit_patience(give_up_s)
        while not self._operation.acquire(timeout=_PATIENCE_S):
            self._hasten()
            if self._wait_limit.over and not self._operation.acquire(timeout=_GATHER_S):
                return self._leave_behind()
            if self._wait_limit.over:
                break
        try:
            if self._status_store.status.state is LoadState.RUNNING:
                if not verify and self._driver is not None:
                    self._driver.hurry()
                self._finish("stopped", LoadState.FINISHED, "load stopped")
            elif self._status_store.status.state is LoadState.ARMED:
                self._let_go()
                self._status_store.change(state=LoadState.IDLE, message="")
                self._ended.set()
            return self.outstanding
        finally:
            self._operation.release()

    def abandon(self) -> None:
        """Make present and future calls of `stop` no longer wait for I/Os that do not complete; never blocks."""
        self._wait_limit.end()
        driver = self._driver
        if driver is not None:
            driver.hurry()
            driver.request_stop()

    def close(self) -> None:
        """Stop whatever there is, at once; may be called twice."""
        self.stop(verify=False)

    @property
    def outstanding(self) -> tuple[Outstanding, ...]:
        """Everything that is outstanding now, or that never completed."""
        driver = self._driver
        return () if driver is None else driver.outstanding()

    def wait(self, timeout_s: float) -> bool:
        """Wait for the run to end; whether it has."""
        return self._ended.wait(timeout_s)

    def take_events(self) -> tuple[Event, ...]:
        """Return the events since the last call; one caller."""
        return self._status_store.take_events()

    @property
    def recent_events(self) -> tuple[Event, ...]:
        """The events since the last `take_events` and those it took: their sample may come too late to be recorded."""
        return self._status_store.recent_events

    def reading(self) -> LoadReading | None:
        """Counters of the running load, once more after it ended, then None; one caller."""
        driver = self._driver
        return None if driver is None else driver.reading()

    def peek(self) -> NDArray[np.uint64] | None:
        """Counters of the running load now, columns as the raw table load; takes nothing from `reading`."""
        driver = self._driver
        return None if driver is None else driver.peek()

    @property
    def used_bytes(self) -> tuple[int, ...]:
        """How many bytes of each target the armed load may use; empty where none is."""
        driver = self._driver
        return () if driver is None else driver.used_bytes

    def last_epoch(self) -> EpochResult | None:
        """Return what was measured since the last turn of the knobs, or in the last epoch; None before there is one."""
        driver = self._driver
        return None if driver is None else driver.last_epoch()

    def result(self) -> RunResult | None:
        """Return what the last run measured; None before one ended."""
        return self._result

    def _supervise(self, driver: LoadDriver) -> None:
        from engine.running.supervisor import supervise  # noqa: PLC0415 - as the driver

        fault = supervise(driver, self._status_store, self._ended)
        with self._operation:
            if fault is None or self._driver is not driver or self._status_store.status.state is not LoadState.RUNNING:
                return
            if fault:
                self._finish("failed", LoadState.FAILED, f"load failed: {fault}", failure=fault)
            else:
                self._finish(driver.ending, LoadState.FINISHED, "load finished")

    def _limit_patience(self, give_up_s: float | None) -> None:
        job, wait_limit = self._status_store.status.job, self._wait_limit
        if give_up_s is not None:
            wait_limit.limit(give_up_s)
        if job is not None:
            wait_limit.limit(job.give_up_s)

    def _hasten(self) -> None:
        """Make calls that arm, start or end a load return soon."""
        driver, state = self._driver, self._status_store.status.state
        if driver is not None and state is LoadState.PREPARING:
            driver.request_stop()
        elif driver is not None and state is LoadState.STOPPING:
            driver.hurry()

    def _leave_behind(self) -> tuple[Outstanding, ...]:
        """Give up a preparation or a start that hangs; its thread ends when its call returns."""
        waits, driver = self.outstanding, self._driver
        if driver is not None:
            driver.request_stop()
        self._status_store.change(state=LoadState.FAILED, message=given_up_text(waits) or "given up", progress=None)
        self._ended.set()
        return waits

    def _finish(self, ended: str, state: LoadState, text: str, failure: str = "") -> None:
        driver, watch = self._driver, self._watch
        assert driver is not None
        assert watch is not None
        self._status_store.change(state=LoadState.STOPPING)
        self._limit_patience(None)
        watch.begin_end()
        trouble = _stop(driver, ended, lambda share: self._status_store.change(progress=share), self._wait_limit)
        self._result = result = replace(driver.result(), stalls=watch.close(), failure=failure)
        if result.verified is not None:
            trouble.append(result.verified.verdict)
            self._status_store.change(damaged=result.verified.damaged, progress=None)
        state = LoadState.FAILED if result.outstanding else state
        message = "; ".join([text, *trouble])
        self._status_store.change(state=state, message=message, errors=result.failed_ios, badges=driver.badges)
        event = "; ".join([f"{text} after {driver.elapsed_s:.1f} s", *trouble])
        self._status_store.note(EventKind.LOAD, event, {"ended": ended})
        self._ended.set()

    def _let_go(self) -> None:
        if self._driver is not None:
            self._driver.stop(wait_limit=self._wait_limit)
        if self._watch is not None:
            self._watch.close()


def _stop(driver: LoadDriver, ended: str, final_pass: Callable[[float], None], wait_limit: WaitLimit) -> list[str]:
    try:
        if driver.stop(ended, final_pass, wait_limit):
            return []
    except OSError as error:
        return [str(error)]
    return [given_up_text(driver.outstanding()) or "some I/Os came back only after they were given up"]


def _facts(status: LoadStatus) -> dict[str, str | float | None]:
    """Say in full what was started, so that it can be run again; without the job where no file can hold it."""
    assert status.job is not None
    from engine.job.file import dump_job  # noqa: PLC0415 - as the driver

    try:
        job = dump_job(status.job)
    except LunscopeError:
        return {"backend": status.backend}
    return {"backend": status.backend, "job": job}


def _words(status: LoadStatus) -> str:
    assert status.job is not None
    targets = ", ".join(status.targets[:4]) + (", ..." if len(status.targets) > 4 else "")
    return f"{describe_job(status.job)}; {status.backend} engine; {targets}"
