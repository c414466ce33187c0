"""A sweep without a screen: prepared, measured point by point, summed up, and ended cleanly by a signal."""

from __future__ import annotations

from collections.abc import Mapping

import click
from msgspec import Struct

from collectors.advice.finding import finding_lines, findings_document
from collectors.advice.of_sweep import findings_of_sweep
from collectors.advice.point_text import point_lines
from engine.errors import LunscopeError
from engine.job.spec import Permissions
from engine.running.control import LoadControl
from engine.strict_json import dump_json
from engine.study.trial_file import TrialFile
from engine.sweep.document import sweep_document
from engine.sweep.plan import SweepPlan
from engine.sweep.runner import SweepResult, SweepRunner
from engine.sweep.text import sweep_lines
from engine.sweep.trial import Trial
from engine.text import safe_text
from tui.headless.leaving import leave
from tui.headless.measuring import MeasuredRun, Sampling
from tui.headless.monitor import READING_S
from tui.headless.signals import EndingSignals
from tui.headless.watched_loads import exit_code
from tui.options.watching import Watching, open_source, recording_exit

LAST_SAMPLE_S = 2.0


class SweepOrder(Struct, frozen=True):
    """What to measure and what to do with it."""

    plan: SweepPlan
    permissions: Permissions
    as_json: bool
    trials: TrialFile[Trial] | None


class HeadlessSweep(MeasuredRun[Trial, SweepResult]):
    """Takes a plan from the preparation of its load to the last point."""

    def __init__(self, order: SweepOrder, control: LoadControl, sampling: Sampling, signals: EndingSignals) -> None:
        super().__init__(control, sampling, signals, order.plan.first, order.trials)
        done = () if order.trials is None else tuple(order.trials.done)
        watch = sampling.watch
        runner = SweepRunner(order.plan, control, self._keep, done, note=control.note_load, watch=watch)
        self.runner, self.result_if_done = runner, runner.result_if_done


def run_sweep(order: SweepOrder, watching: Watching) -> int:
    """Measure a plan until it is done or a signal comes, and print what it says; returns the exit code.

    Raises:
        LunscopeError: the load cannot be prepared or started.
    """
    control = LoadControl()
    with EndingSignals() as signals:
        source, recording = open_source(watching, control)
        sampling = Sampling.of(source, control, watching)
        monitor = sampling.monitor
        sweep = HeadlessSweep(order, control, sampling, signals)
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
            _print(sweep.result, control.status.targets, sampling.watch.host(), as_json=order.as_json)
            code = code or int(not sweep.result.is_complete)
        if control.outstanding:
            leave(code or 1)
        return recording_exit(recording, code)


def _print(result: SweepResult, targets: tuple[str, ...], host: Mapping[str, object] | None, *, as_json: bool) -> None:
    findings = findings_of_sweep(result)
    if as_json:
        document = {**sweep_document(result, targets), "host": host, "findings": findings_document(findings)}
        click.echo(dump_json(document))
        return
    for line in (*sweep_lines(result), *point_lines(result), *finding_lines(findings)):
        click.echo(safe_text(line))
