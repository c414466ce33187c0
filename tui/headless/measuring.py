"""A load that is measured trial by trial without a screen, and ended cleanly by a signal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar

import click
from msgspec import Struct

from collectors.advice.point_watch import DeviceWatch
from collectors.model import Source
from engine.background_call import BackgroundCall
from engine.errors import LunscopeError
from engine.job.knobs import Knobs
from engine.job.spec import JobSpec, Permissions
from engine.running.control import LoadControl
from engine.study.runner import StudyRunner
from engine.study.trial_file import Trial, TrialFile
from engine.text import safe_text
from tui.headless.leaving import leave
from tui.headless.monitor import READING_S, Monitor
from tui.headless.signals import EndingSignals
from tui.headless.watched_loads import HeadlessRun
from tui.options.watching import Watching, open_source, recording_exit

_POLL_S = 0.05
_REPORT_S = 0.5
_LINE_CELLS = 72
_LAST_SAMPLE_S = 2.0
_ENDING_S = 2.0
"""How long a measurement may take to end after a signal."""

Result = TypeVar("Result")


class Sampling(Struct, frozen=True):
    """The sampling of this host beside a load, and what it shows of each point."""

    monitor: Monitor
    watch: DeviceWatch

    @classmethod
    def of(cls, source: Source, control: LoadControl, watching: Watching) -> Self:
        """Sample a source for the points of a load; the monitor is not started."""
        watch = DeviceWatch(lambda: control.status, watching.sysfs)
        monitor = Monitor(source, watch.observe)
        watch.attach(monitor.request_sample)
        return cls(monitor, watch)


class Bench(Struct, frozen=True):
    """What loads are measured with, one after the other."""

    control: LoadControl
    sampling: Sampling
    signals: EndingSignals


def measure_loads(watching: Watching, measure: Callable[[Bench], int], show: Callable[[Bench], int]) -> int:
    """Measure loads while this host is sampled, then show what there is; returns the exit code.

    `measure` and `show` return theirs, the first that is not 0 counts. What `measure` raises is said in one line.
    """
    control = LoadControl()
    with EndingSignals() as signals:
        source, recording = open_source(watching, control)
        bench = Bench(control, Sampling.of(source, control, watching), signals)
        monitor = bench.sampling.monitor
        try:
            monitor.start()
            code = measure(bench)
            if recording is not None:
                monitor.wait_for_next(min(watching.interval_s, _LAST_SAMPLE_S) + READING_S)
        except LunscopeError as error:
            click.echo(f"lunscope: {safe_text(str(error))}", err=True)
            code = error.exit_code
        finally:
            monitor.close()
        shown = show(bench)
        code = code or shown
        if control.outstanding:
            leave(code or 1)
        return recording_exit(recording, code)


class MeasuredRun(HeadlessRun, Generic[Trial, Result]):
    """Takes a load from its preparation to the last trial."""

    def __init__(self, bench: Bench, first: Knobs, trials: TrialFile[Trial] | None) -> None:
        super().__init__(bench.control, bench.sampling.monitor, bench.signals, report_progress)
        self._control, self._signals, self._first, self._trials = bench.control, bench.signals, first, trials
        self._watch = bench.sampling.watch
        self.runner: StudyRunner[Any, Trial, Result]
        self._trouble: LunscopeError | None = None
        self.result: Result | None = None
        """None if the load never began."""

    def _prepare(self, job: JobSpec, permissions: Permissions) -> None:
        self._do_unless_stopped(lambda: self._control.arm(job, permissions), "lunscope-arm")
        self._do_unless_stopped(lambda: self._control.turn(self._first), "lunscope-turn")
        self._do_unless_stopped(self._control.start, "lunscope-start")

    def _follow(self) -> None:
        under_way, reported_s = BackgroundCall(self.runner.run, "lunscope-trials"), 0.0
        while not under_way.done.wait(_POLL_S):
            self._name_waits()
            if self._signals.wait(0) is not None:
                self.runner.stop()
                # A turn of the knobs may hang as long as the device does; the end of the load sees to that.
                under_way.done.wait(_ENDING_S)
                break
            if time.monotonic() - reported_s >= _REPORT_S:
                reported_s = time.monotonic()
                report_progress(self.runner.progress_line)
        self.result = under_way.result() if under_way.done.is_set() else self.runner.result_so_far("stopped")
        if self._trouble is not None:
            raise self._trouble

    def _keep(self, curve: int, trial: Trial) -> None:
        if self._trials is None:
            return
        try:
            self._trials.note_host(self._watch.host() or {})
            self._trials.append(curve, trial)
        except LunscopeError as error:
            self._trouble = error
            self.runner.stop()


def report_progress(text: str) -> None:
    """Show one line in place of the one before, on a terminal only."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{safe_text(text):<{_LINE_CELLS}}\r")
        sys.stderr.flush()
