"""Loads without a screen, one after another: run, recorded, summarised, results saved to files."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from collectors.advice.finding import finding_lines, findings_document
from collectors.advice.of_run import findings_of_run
from collectors.model import Step
from collectors.reports.host_facts import host_document
from collectors.reports.load_series import LoadSeries
from collectors.reports.run_devices import RunDevices, RunSamples, device_lines, devices_document
from engine.background_call import BackgroundCall
from engine.errors import LunscopeError
from engine.job.formats.read_job import ReadJob
from engine.job.spec import Permissions
from engine.results.measured import LoadInterval
from engine.results.response_times import ResponseTimes, response_document, response_lines
from engine.results.result import RunResult
from engine.results.result_document import run_document
from engine.results.result_text import summary_lines
from engine.running.control import LoadControl
from engine.text import safe_text
from tui.headless.leaving import leave
from tui.headless.monitor import READING_S, Monitor
from tui.headless.one_run import HeadlessRun, exit_code
from tui.headless.precondition import Preconditioned
from tui.headless.signals import EndingSignals
from tui.options.tiers import PATIENCE_S
from tui.options.watching import Watching, open_source

_LAST_SAMPLE_S = 2.0
"""How long a recording waits for the sample with the last I/Os."""
_LINE_CELLS = 72
_LOOK_S = 0.05
_CLOSE_S = 5.0
"""Limit for closing a recording when something hangs."""
_UNRECORDED_S = 1.0
"""The same without a recording, where nothing can be lost."""

Runs = list[tuple[RunResult, Sequence[LoadInterval]]]
"""A result, with its per-second samples."""


@dataclass(frozen=True, slots=True)
class ResultOutput:
    """Where results are saved in addition to standard output."""

    as_json: bool
    fio_json: Path | None
    preconditioned: Preconditioned | None = None
    """What was written to the targets before."""


def run_headless(read: ReadJob, permissions: Permissions, watching: Watching, output: ResultOutput) -> int:
    """Run the jobs of a file until all are done or a signal comes; returns the exit code.

    Raises:
        LunscopeError: a job cannot be prepared or started; results of earlier ones are kept.
    """
    if output.fio_json is not None:
        from engine.results.fio_plot import make_folder  # noqa: PLC0415 (few runs need it)

        make_folder(output.fio_json, read.scenarios)
    control, series, runs = LoadControl(), LoadSeries(), Runs()
    with EndingSignals() as signals:
        source, recording = open_source(watching, control, patience_s=PATIENCE_S)
        samples = RunSamples()
        monitor = Monitor(source, lambda step: _observe(step, series, samples))
        code = 0
        try:
            monitor.start()
            for scenario in read.scenarios:
                run = HeadlessRun(control, monitor, signals, _print_status, turns=scenario.turns, samples=samples)
                result = run.drive(scenario.job, permissions)
                if recording is not None or output.fio_json is not None:
                    monitor.wait_for_next(min(watching.interval_s, _LAST_SAMPLE_S) + READING_S)
                runs.append((result, series.intervals))
                devices = samples.below(result.about, watching.sysfs, follow_files=not result.outstanding)
                step = monitor.step
                host = None if step is None else host_document(step.current.topology, result.about, watching.sysfs)
                _print_run(result, devices, host, read, output)
                code = exit_code(result, control.status.state, signals) or code
                if code > 1 or control.outstanding:
                    break
        except LunscopeError as error:
            if not control.outstanding:
                raise
            click.echo(f"lunscope: {safe_text(str(error))}", err=True)
            code = _code_of(signals)
        finally:
            _close(monitor, watching, signals, hurried=bool(control.outstanding))
            _leave(output.fio_json, runs)
            if control.outstanding:
                leave(code or 1)
        trouble = monitor.failure or (recording.trouble if recording is not None else "")
        if trouble:
            click.echo(f"lunscope: {safe_text(str(trouble))}", err=True)
        return 1 if trouble and not code else code


def _close(monitor: Monitor, watching: Watching, signals: EndingSignals, *, hurried: bool) -> None:
    """Close source and recording; with a limit of a few seconds if something hangs or a second signal came."""
    closing = BackgroundCall(monitor.close, "lunscope-monitor-close")
    limit_s = _UNRECORDED_S if watching.record is None else _CLOSE_S
    while not closing.done.wait(_LOOK_S):
        if (hurried or signals.count > 1) and not closing.done.wait(limit_s):
            if watching.record is not None:
                path = safe_text(str(watching.record))
                click.echo(f"lunscope: {path}: not closed within {limit_s:g} s: its disk does not respond", err=True)
            leave(_code_of(signals))
    closing.result()


def _code_of(signals: EndingSignals) -> int:
    """Exit code when something hangs: 128 + the signal that ended the run, or 1."""
    signal = signals.wait(0)
    return 1 if signal is None else 128 + signal


def _leave(folder: Path | None, runs: Runs) -> None:
    if folder is None:
        return
    from engine.results.fio_plot import write_results  # noqa: PLC0415 (few runs need it)

    for line in write_results(folder, runs):
        click.echo(f"lunscope: {line}", err=True)


def _observe(step: Step, series: LoadSeries, samples: RunSamples) -> None:
    series.observe(step)
    samples.observe(step)


def _print_run(
    result: RunResult,
    devices: RunDevices | None,
    host: Mapping[str, object] | None,
    read: ReadJob,
    output: ResultOutput,
) -> None:
    """Print one of the runs of a file, with its name if there are several."""
    wanted = ResponseTimes(read.response_limits_s, read.response_edges_s)
    findings = findings_of_run(result, devices)
    done = output.preconditioned
    if output.as_json:
        document = {
            **run_document(result),
            "preconditioned": None if done is None else done.document,
            "devices": devices_document(devices),
            "host": host,
            "findings": findings_document(findings),
            "response_times": response_document(result, wanted),
        }
        click.echo(json.dumps(document, allow_nan=False))
        return
    if len(read.scenarios) > 1:
        click.echo(f"[{safe_text(result.about.job.name)}]")
    if done is not None:
        click.echo(done.line)
    lines = summary_lines(result)
    gap = [""] if lines[-1] else []
    for line in (*lines, *gap, *device_lines(devices), *finding_lines(findings), *response_lines(result, wanted)):
        click.echo(safe_text(line))


def _print_status(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{safe_text(text):<{_LINE_CELLS}}\r")
        sys.stderr.flush()


def print_result(result: RunResult) -> None:
    """Print the summary of a result to standard output."""
    for line in summary_lines(result):
        click.echo(safe_text(line))
