"""A sweep without a screen: prepared, measured point by point, summed up, and ended cleanly by a signal."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass

import click

from collectors.advice.finding import finding_lines, findings_document
from collectors.advice.of_sweep import findings_of_sweep
from engine.background_call import BackgroundCall
from engine.errors import LunscopeError
from engine.job.spec import JobSpec, Permissions
from engine.running.control import LoadControl
from engine.sweep.document import sweep_document
from engine.sweep.plan import SweepPlan
from engine.sweep.runner import SweepProgress, SweepResult, SweepRunner
from engine.sweep.text import sweep_lines
from engine.sweep.trial import Trial
from engine.sweep.trial_file import TrialFile
from engine.text import safe_text
from tui.headless.leaving import leave
from tui.headless.monitor import READING_S, Monitor
from tui.headless.one_run import HeadlessRun, exit_code
from tui.headless.signals import EndingSignals
from tui.options.watching import Watching, open_source, recording_exit

_LOOK_S = 0.05
_REPORT_S = 0.5
_LINE_CELLS = 72
LAST_SAMPLE_S = 2.0
_ENDING_S = 2.0
"""How long a measurement may take to end after a signal."""


@dataclass(frozen=True, slots=True)
class SweepOrder:
    """What to measure and what to do with it."""

    plan: SweepPlan
    permissions: Permissions
    as_json: bool
    trials: TrialFile | None


class HeadlessSweep(HeadlessRun):
    """Takes a plan from the preparation of its load to the last point."""

    def __init__(self, order: SweepOrder, control: LoadControl, monitor: Monitor, signals: EndingSignals) -> None:
        super().__init__(control, monitor, signals, report_progress)
        self._order, self._control, self._signals = order, control, signals
        done = () if order.trials is None else tuple(order.trials.done)
        self._runner = SweepRunner(order.plan, control, self._keep, done, note=control.note_load)
        self._trouble: LunscopeError | None = None
        self.result: SweepResult | None = None
        """None if the load never began."""

    def _prepare(self, job: JobSpec, permissions: Permissions) -> None:
        self._do_unless_stopped(lambda: self._control.arm(job, permissions), "lunscope-arm")
        self._do_unless_stopped(lambda: self._control.turn(self._order.plan.first), "lunscope-turn")
        self._do_unless_stopped(self._control.start, "lunscope-start")

    def _follow(self) -> None:
        under_way, reported_s = BackgroundCall(self._runner.run, "lunscope-sweep"), 0.0
        while not under_way.done.wait(_LOOK_S):
            self._name_waits()
            if self._signals.wait(0) is not None:
                self._runner.stop()
                # A turn of the knobs may hang as long as the device does; the end of the load sees to that.
                under_way.done.wait(_ENDING_S)
                break
            if time.monotonic() - reported_s >= _REPORT_S:
                reported_s = time.monotonic()
                report_progress(progress_line(self._runner.progress))
        self.result = under_way.result() if under_way.done.is_set() else self._runner.result_so_far("stopped")
        if self._trouble is not None:
            raise self._trouble

    def _keep(self, curve: int, trial: Trial) -> None:
        if self._order.trials is None:
            return
        try:
            self._order.trials.append(curve, trial)
        except LunscopeError as error:
            self._trouble = error
            self._runner.stop()


def run_sweep(order: SweepOrder, watching: Watching) -> int:
    """Measure a plan until it is done or a signal comes, and print what it says; returns the exit code.

    Raises:
        LunscopeError: the load cannot be prepared or started.
    """
    control = LoadControl()
    with EndingSignals() as signals:
        source, recording = open_source(watching, control)
        monitor = Monitor(source)
        sweep = HeadlessSweep(order, control, monitor, signals)
        code = 0
        try:
            monitor.start()
            load = sweep.drive(order.plan.armed, order.permissions)
            if recording is not None:
                monitor.wait_for_next(min(watching.interval_s, LAST_SAMPLE_S) + READING_S)
            code = exit_code(load, control.status.state, signals)
        except LunscopeError as error:
            click.echo(f"lunscope: {safe_text(str(error))}", err=True)
            code = error.exit_code
        finally:
            monitor.close()
        if sweep.result is not None:
            _print(sweep.result, control.status.targets, as_json=order.as_json)
            code = code or int(not sweep.result.is_complete)
        if control.outstanding:
            leave(code or 1)
        return recording_exit(recording, code)


def progress_line(progress: SweepProgress) -> str:
    """Say in one line how far a sweep is."""
    left = f"{progress.left_s / 60:.0f} min" if progress.left_s >= 90 else f"{progress.left_s:.0f} s"
    return f"{progress.done}/{progress.expected} measured, about {left} left  {progress.point}"


def _print(result: SweepResult, targets: tuple[str, ...], *, as_json: bool) -> None:
    findings = findings_of_sweep(result)
    if as_json:
        document = {**sweep_document(result, targets), "findings": findings_document(findings)}
        click.echo(json.dumps(document, allow_nan=False))
        return
    for line in (*sweep_lines(result), *finding_lines(findings)):
        click.echo(safe_text(line))


def report_progress(text: str) -> None:
    """Show one line in place of the one before, on a terminal only."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{safe_text(text):<{_LINE_CELLS}}\r")
        sys.stderr.flush()
