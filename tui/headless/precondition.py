"""Preconditioning before a load or a sweep: a load of its own, whose writes are in no result."""

from __future__ import annotations

import sys
import time
from typing import ClassVar

from msgspec import Struct

from engine.errors import LunscopeError
from engine.job.precondition import PASSES, precondition_job, precondition_words, progress_words
from engine.job.sizes import human_size
from engine.job.spec import JobSpec, Permissions
from engine.results.result import RunResult
from engine.running.control import LoadControl
from engine.text import safe_text
from tui.headless.driven_run import DrivenRun
from tui.headless.leaving import leave
from tui.headless.signals import EndingSignals
from tui.headless.watched_loads import exit_code
from tui.process.standard_streams import say

_LOG_S = 30.0
"""How often progress is a line of its own where there is no terminal."""
_WRITE_BYTES = 5
"""Column of the raw table load."""


class Preconditioned(Struct, frozen=True):
    """What was written before a load."""

    code: int
    """Exit code; 0 if everything was written."""
    written_bytes: int
    elapsed_s: float

    @property
    def line(self) -> str:
        """For people."""
        return f"preconditioned: {human_size(self.written_bytes)} in {PASSES} passes, {self.elapsed_s:.0f} s"

    @property
    def document(self) -> dict[str, object]:
        """For JSON."""
        return {"passes": PASSES, "written_bytes": self.written_bytes, "elapsed_s": round(self.elapsed_s, 3)}


class Preconditioning(Struct, frozen=True):
    """What to write, and the load that is measured after it."""

    job: JobSpec
    measured: JobSpec
    permissions: Permissions


def preconditioning(measured: JobSpec, permissions: Permissions, *, wanted: bool) -> Preconditioning | None:
    """Plan to precondition the targets of a load; None if that is not wanted.

    Raises:
        UsageError: a target cannot be preconditioned.
        RefusedError: writing to one of them was not allowed.
    """
    return Preconditioning(precondition_job(measured, permissions), measured, permissions) if wanted else None


class _PreconditionRun(DrivenRun):
    """Writes to the targets until they are full twice; checks the load that comes after it first."""

    REPORT_S: ClassVar[float] = 0.5

    def __init__(self, control: LoadControl, signals: EndingSignals, measured: JobSpec) -> None:
        super().__init__(control, signals)
        self._measured = measured
        self._total_bytes: tuple[int, ...] = ()
        self._logged_s = time.monotonic()

    def _prepare(self, job: JobSpec, permissions: Permissions) -> None:
        # What is wrong with the load itself is said now and not after hours of writing.
        self._do_unless_stopped(lambda: self._control.arm(self._measured, permissions), "lunscope-arm")
        self._do_unless_stopped(lambda: self._control.arm(job, permissions), "lunscope-arm")
        used_bytes = self._control.used_bytes
        self._total_bytes = tuple(PASSES * each for each in used_bytes)
        for line in precondition_words(job, self._control.status.targets, used_bytes):
            self._say(safe_text(line))
        self._do_unless_stopped(self._control.start, "lunscope-start")
        self._logged_s = time.monotonic()

    def _act(self) -> None:
        if time.monotonic() - self._logged_s >= _LOG_S and not sys.stderr.isatty():
            self._logged_s = time.monotonic()
            self._say(self._progress())

    def _progress(self) -> str:
        counters = self._control.peek()
        written = [0] * len(self._total_bytes) if counters is None else counters[:, _WRITE_BYTES].tolist()
        return progress_words(self._total_bytes, written, self._control.status.elapsed_s)


def run_precondition(order: Preconditioning | None) -> Preconditioned | None:
    """Write to the targets until that is done or a signal comes; does nothing without an order.

    Raises:
        LunscopeError: it or the load that follows cannot be prepared or started; the latter before anything is written.
    """
    if order is None:
        return None
    control = LoadControl()
    with EndingSignals() as signals:
        try:
            result = _PreconditionRun(control, signals, order.measured).drive(order.job, order.permissions)
        except LunscopeError as error:
            if not control.outstanding:
                raise
            say(str(error))
            leave(error.exit_code or 1)
        code = exit_code(result, control.status.state, signals) or int(result.about.ended != "size")
        say(_outcome(result, code, control))
        if control.outstanding:
            leave(code or 1)
    return Preconditioned(code, result.total.write.bytes, result.about.elapsed_s)


def precondition_code(order: Preconditioning | None) -> int:
    """Do the same; returns the exit code, 0 if what follows can be measured."""
    done = run_precondition(order)
    return 0 if done is None else done.code


def _outcome(result: RunResult, code: int, control: LoadControl) -> str:
    if not code:
        return f"preconditioning: done after {result.about.elapsed_s:.0f} s"
    failed = f"{result.failed_ios:,} writes failed; " if result.failed_ios else ""
    return f"preconditioning: {failed}{control.status.message or 'stopped'}: nothing is measured"
