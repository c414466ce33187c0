"""Loads without a screen, one after another: run, recorded, summarised, results saved to files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from collectors.model import Step
from collectors.reports.host_facts import host_document
from collectors.reports.load_series import LoadSeries
from collectors.reports.run_devices import RunSamples
from engine.background_call import BackgroundCall
from engine.errors import LunscopeError
from engine.job.formats.read_job import ReadJob
from engine.job.group import LoadGroup
from engine.job.scenario import Scenario
from engine.job.spec import Knobs, Permissions
from engine.results.group_result import GroupResult
from engine.results.result import RunResult
from engine.running.group_control import GroupControl
from engine.text import safe_text
from tui.headless.leaving import leave
from tui.headless.metered import metered
from tui.headless.monitor import READING_S, Monitor
from tui.headless.run_output import FoundBelow, ResultOutput, print_phase
from tui.headless.signals import EndingSignals
from tui.headless.watched_loads import HeadlessGroup, HeadlessRun, exit_code, group_exit_code
from tui.options.reading import PATIENCE_S, longest_first_sample_s
from tui.options.watching import Watching, open_source
from tui.process.standard_streams import say

if TYPE_CHECKING:
    from engine.results.fio_plot import FioRun

_LAST_SAMPLE_S = 2.0
"""How long a recording waits for the sample with the last I/Os."""
_POLL_S = 0.05
_CLOSE_S = 5.0
"""Limit for closing a recording when something hangs."""
_UNRECORDED_S = 1.0
"""The same without a recording, where nothing can be lost."""


def run_headless(read: ReadJob, permissions: Permissions, watching: Watching, output: ResultOutput) -> int:
    """Run the jobs of a file until all are done or a signal comes; returns the exit code.

    Raises:
        LunscopeError: a job cannot be prepared or started; results of earlier ones are kept.
    """
    if output.fio_json is not None:
        from engine.results.fio_plot import make_folder  # noqa: PLC0415 (few runs need it)

        make_folder(output.fio_json, [each for phase in read.jobs for each in phase])
    control, series = GroupControl(), _PhaseSeries(with_times=output.fio_json is not None)
    runs: list[FioRun] = []
    with EndingSignals() as signals:
        opened, recording = open_source(watching, control, patience_s=PATIENCE_S, say=say)
        source = metered(opened, watching.metrics_file, lambda: _knobs(control), on_screen=False)
        samples = RunSamples()
        monitor = Monitor(
            source,
            lambda step: _observe(step, series, samples),
            first_sample_s=longest_first_sample_s(watching.tier),
        )
        code = 0
        try:
            monitor.start()
            phases = _Phases(control, monitor, signals, samples, permissions)
            for phase in read.phases:
                series.begin(phase.names if isinstance(phase, LoadGroup) else ("",))
                result, phase_code = phases.run(phase)
                if recording is not None or output.fio_json is not None:
                    monitor.wait_for_next(min(watching.interval_s, _LAST_SAMPLE_S) + READING_S)
                found = _found(result, samples, monitor, watching, control)
                if output.fio_json is not None:
                    runs += _fio_runs(result, series, found)
                print_phase(result, found, read, output)
                code = phase_code or code
                if code > 1 or control.outstanding:
                    break
        except LunscopeError as error:
            if not control.outstanding:
                raise
            say(str(error))
            code = _code_of(signals)
        finally:
            _close(monitor, watching, signals, hurried=bool(control.outstanding))
            _leave(output.fio_json, runs)
            if control.outstanding:
                leave(code or 1)
        trouble = monitor.failure or (recording.trouble if recording is not None else "")
        if trouble:
            say(str(trouble))
        return 1 if trouble and not code else code


def _knobs(control: GroupControl) -> Knobs | None:
    """Return the knobs in force; None for several loads at once, which have their own."""
    loads = control.loads
    return loads[0][1].status.knobs if len(loads) == 1 else None


class _Phases(Struct, frozen=True):
    """Runs the phases of a file one after the other."""

    control: GroupControl
    monitor: Monitor
    signals: EndingSignals
    samples: RunSamples
    permissions: Permissions

    def run(self, phase: Scenario | LoadGroup) -> tuple[RunResult | GroupResult, int]:
        """Run one; returns what it measured and its exit code."""
        if isinstance(phase, LoadGroup):
            loads = HeadlessGroup(self.control, self.monitor, self.signals, self.samples)
            group = loads.drive(phase, self.permissions)
            return group, group_exit_code(group, self.control, self.signals)
        alone = self.control.alone()
        run = HeadlessRun(alone, self.monitor, self.signals, turns=phase.turns, samples=self.samples)
        result = run.drive(phase.job, self.permissions)
        return result, exit_code(result, alone.status.state, self.signals)


def _found(
    result: RunResult | GroupResult, samples: RunSamples, monitor: Monitor, watching: Watching, control: GroupControl
) -> FoundBelow:
    """Gather what the devices below the targets did, and what happened on the host."""
    load = result.about if isinstance(result, RunResult) else result
    devices = samples.below(load, watching.sysfs, follow_files=not control.outstanding)
    step = monitor.step
    host = None if step is None else host_document(step.current.topology, load, watching.sysfs)
    return FoundBelow(devices, host, samples.events)


def _close(monitor: Monitor, watching: Watching, signals: EndingSignals, *, hurried: bool) -> None:
    """Close source and recording; with a limit of a few seconds if something hangs or a second signal came."""
    closing = BackgroundCall(monitor.close, "lunscope-monitor-close")
    limit_s = _UNRECORDED_S if watching.record is None else _CLOSE_S
    while not closing.done.wait(_POLL_S):
        if (hurried or signals.count > 1) and not closing.done.wait(limit_s):
            if watching.record is not None:
                path = safe_text(str(watching.record))
                say(f"{path}: not closed within {limit_s:g} s: its disk does not respond")
            leave(_code_of(signals))
    closing.result()


def _code_of(signals: EndingSignals) -> int:
    """Exit code when something hangs: 128 + the signal that ended the run, or 1."""
    signal = signals.wait(0)
    return 1 if signal is None else 128 + signal


class _PhaseSeries:
    """The intervals of each load of the phase that runs."""

    def __init__(self, *, with_times: bool) -> None:
        self._with_times = with_times
        self.loads: tuple[LoadSeries, ...] = ()

    def begin(self, names: Sequence[str]) -> None:
        """Begin with the loads of a phase; one alone has no name."""
        self.loads = tuple(LoadSeries(with_times=self._with_times, load=name) for name in names)

    def observe(self, step: Step) -> None:
        """Add the interval since the previous step."""
        for series in self.loads:
            series.observe(step)


def _fio_runs(result: RunResult | GroupResult, series: _PhaseSeries, found: FoundBelow) -> list[FioRun]:
    from collectors.reports.run_devices import fio_disks  # noqa: PLC0415 (few runs need it)
    from engine.results.fio_plot import FioRun  # noqa: PLC0415 (few runs need it)

    results = (result,) if isinstance(result, RunResult) else result.results
    disks = fio_disks(found.devices)
    return [
        FioRun(one, of_one.between(one.about.started_ns, one.measured_until_ns), disks)
        for one, of_one in zip(results, series.loads, strict=True)
    ]


def _leave(folder: Path | None, runs: Sequence[FioRun]) -> None:
    if folder is None:
        return
    from engine.results.fio_plot import write_results  # noqa: PLC0415 (few runs need it)

    for line in write_results(folder, runs):
        say(line)


def _observe(step: Step, series: _PhaseSeries, samples: RunSamples) -> None:
    series.observe(step)
    samples.observe(step)
