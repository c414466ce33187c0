"""`lunscope fleet`: one picture and one load over many hosts, over the operator's own ssh."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from threading import Event as StopFlag
from threading import Thread
from typing import Any

import click

from collectors.fleet.fleet_drive import FleetDrive, FleetWork
from collectors.fleet.fleet_source import FleetSource, HostOrFleet
from collectors.fleet.host_jobs import HostJob, host_jobs
from collectors.fleet.node_sets import expand, expand_names
from collectors.sources.recorder import RecordingSource
from engine.errors import LunscopeError, UsageError
from engine.events import Event
from engine.job.scenario import Scenario
from engine.job.spec import JobSpec
from engine.job.validate import validate
from engine.sweep.plan import SweepPlan
from engine.sweep.presets.plans import PresetAsked
from engine.sweep.presets.preset import HostSize
from engine.sweep.presets.registry import FLEET_PRESETS, fleet_preset
from engine.text import safe_text
from tui.headless.fleet_run import print_fleet_result, run_fleet, watch_fleet
from tui.headless.fleet_sweep import (
    FleetMeasuring,
    FleetSweepWork,
    ShowMeasured,
    plan_fleet_preset,
    plan_fleet_sweep,
    show_scaling,
    show_study,
    sweep_fleet,
)
from tui.headless.leaving import go_on_in_child
from tui.headless.metered import metered, require_metrics_file
from tui.options.fleet import DrivingOptions, FleetOptions, driving_options, fleet_options, open_fleet
from tui.options.job import LoadOptions, load_options, permission_options
from tui.options.numbers import WHOLE
from tui.options.run_jobs import bounded, read_work, with_scratch, with_unreported_times
from tui.options.session import load_metrics_option
from tui.options.watching import recording_exit
from tui.process.standard_streams import say

_SWEEP_SCREEN = "sweep"
"""Id of the screen in tui/screen_registry.py, which needs textual."""


@click.group(short_help="one picture and one load over many hosts, over ssh")
def command() -> None:
    """Watch many hosts as one, and drive one load over them, over your own ssh: its config, agent and jump hosts.

    Nothing listens anywhere: `lunscope agent --stdio` runs on each host as long as ssh is there. It issues I/O only
    while it hears from here; nothing is outstanding 3 s after it no longer does.
    """


@command.command(short_help="all hosts: totals, hot hosts and disks")
@fleet_options
@click.option("--headless", is_flag=True, help="No screen, even on a terminal: text.")
@click.option("--json", "as_json", is_flag=True, help="No screen; a JSON line (lunscope.fleet/1) per interval.")
@click.option("--count", type=WHOLE, metavar="N", help="Without a screen: so many intervals. [until interrupted]")
def watch(*, fleet: FleetOptions, headless: bool, as_json: bool, count: int | None) -> int:
    """Watch many hosts: their totals, the hot hosts and disks, percentiles of all I/Os; one host on all screens.

    Hosts whose part is missing are named with the reason, in ssh's own words.

    Exits 0, or 1 where no host was connected at the end or the recording failed.
    """
    source, recording = open_fleet(fleet, runs=False)
    shown = source if recording is None else recording
    if is_terminal() and not (headless or as_json):
        return recording_exit(recording, _on_screen(source, recording))
    return recording_exit(recording, watch_fleet(shown, source, count, as_json=as_json))


def is_terminal() -> bool:
    """Whether screens can be shown."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def _on_screen(source: FleetSource, recording: RecordingSource | None) -> int:
    from tui.app.start import start  # noqa: PLC0415 (textual is loaded for the screen only)
    from tui.app_input import AppInput  # noqa: PLC0415 (textual is loaded for the screen only)

    go_on_in_child()
    shown = HostOrFleet(source if recording is None else recording, source.controller)
    return start(AppInput(shown, recording=recording, fleet=shown))


@command.command(short_help="one load over all hosts")
@click.argument("job_file", metavar="[JOB]", required=False, type=click.Path(path_type=Path))
@fleet_options
@load_options
@permission_options
@driving_options
@load_metrics_option
@click.option("--headless", is_flag=True, help="No screen, even on a terminal; runs 10 s unless --runtime is given.")
def run(
    job_file: Path | None,
    *,
    fleet: FleetOptions,
    allow_write: tuple[str, ...],
    destroy_data: bool,
    driving: DrivingOptions,
    metrics_textfile: Path | None,
    headless: bool,
    **knobs: Any,  # noqa: ANN401 (the options of LoadOptions, which checks their names)
) -> int:
    """Drive one load over all hosts: the same job on each, started and turned at one time.

    On a terminal the Hosts screen shows it, and its keys turn the knobs on all hosts at once.

    JOB and its options are those of `lunscope run`; without a target each host makes a scratch file. --target PATH is
    a target of every host, --target HOSTS:PATH only there. Writing needs --allow-write HOSTS:PATH, and the guard of
    each host decides. The load ends on every host before 3 s have passed without a word from here.

    Exits 0, 1 if I/Os failed or a host is missing, 2 for usage errors, 130, 143 or 129 if a signal ended it.
    """
    require_metrics_file(metrics_textfile)
    scenario = only_scenario(job_file, LoadOptions(**knobs))
    on_screen = is_terminal() and not (headless or driving.as_json or scenario.turns)
    job = scenario.job if on_screen else bounded(scenario.job, scenario.last_turn_s)
    jobs = _jobs_of_hosts(job_file, job, allow_write, fleet, knobs)
    for each in jobs.values():
        validate(each.job)
    work = FleetWork(jobs, scenario.turns, driving.window_s, destroy_data, driving.partial)
    if on_screen:
        go_on_in_child()
    source, recording = open_fleet(fleet, runs=True)
    drive = FleetDrive(source.controller, work)
    recorded = source if recording is None else recording
    sampled = metered(recorded, metrics_textfile, lambda: drive.knobs, on_screen=on_screen)
    if on_screen:
        shown = HostOrFleet(sampled, source.controller)
        return recording_exit(recording, _run_on_screen(shown, recording, drive))
    result, code = run_fleet(sampled, drive)
    print_fleet_result(result, as_json=driving.as_json)
    return recording_exit(recording, code)


def _jobs_of_hosts(
    job_file: Path | None, job: JobSpec, allow_write: tuple[str, ...], fleet: FleetOptions, knobs: Mapping[str, Any]
) -> dict[str, HostJob]:
    """Make the jobs of all hosts; only options name groups of hosts, for which groups.conf may run commands."""

    def of_option(nodes: str, option: str) -> tuple[str, ...]:
        return expand(nodes, None, option)

    def of_file(nodes: str, _option: str) -> tuple[str, ...]:
        return expand_names(nodes, f"{safe_text(str(job_file))}: target")

    return host_jobs(job, allow_write, fleet.names, of_option, of_option if knobs.get("target") else of_file)


def _run_on_screen(shown: HostOrFleet, recording: RecordingSource | None, drive: FleetDrive) -> int:
    from tui.app.start import start  # noqa: PLC0415 - as above
    from tui.app_input import AppInput  # noqa: PLC0415 - as above
    from tui.load.fleet_load_controller import FleetLoadController  # noqa: PLC0415 (the screen only)

    load = FleetLoadController(drive)
    events: list[Event] = []
    code = start(
        AppInput(shown, recording=recording, fleet=shown, fleet_load=load),
        before_close=load.stop,
        keep_events=events.extend,
    )
    result = drive.result()
    if result is None or not result.hosts:
        if load.status.message:
            say(load.status.message)
        return code or 1
    print_fleet_result(result.with_events(events), as_json=False)
    return code or int(result.is_bad)


@command.command(short_help="how one load scales over hosts")
@click.argument("job_file", metavar="[JOB]", required=False, type=click.Path(path_type=Path))
@fleet_options
@load_options
@permission_options
@click.option(
    "--vary",
    multiple=True,
    metavar="KNOB=VALUES",
    help="hosts=1,2,4 and knobs as in lunscope sweep; repeat for every combination. [hosts doubled up to all]",
)
@click.option("--slo", multiple=True, metavar="LIMIT", help="As in lunscope sweep: best load within p99<2ms.")
@click.option(
    "--preset",
    metavar="NAME",
    help=f"Repeat a published study over hosts, in its tables: {', '.join(FLEET_PRESETS)}. --runtime is the time of "
    "each point. [5s]",
)
@click.option(
    "--trials",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Keep each measurement in FILE as it is made; a sweep that was ended, however, goes on from there.",
)
@driving_options
@click.option("--headless", is_flag=True, help="No screen, even on a terminal.")
def sweep(
    job_file: Path | None,
    *,
    fleet: FleetOptions,
    allow_write: tuple[str, ...],
    destroy_data: bool,
    vary: tuple[str, ...],
    slo: tuple[str, ...],
    preset: str | None,
    trials: Path | None,
    driving: DrivingOptions,
    headless: bool,
    **knobs: Any,  # noqa: ANN401 (the options of LoadOptions, which checks their names)
) -> int:
    """Measure one load over 1, 2, 4 ... hosts, and say up to how many it scales.

    The first hosts of the set drive each point, started, turned and measured at one time; percentiles are of all I/Os.
    Each point is measured as long as its figures need, as in `lunscope sweep`. On a terminal the points are on the
    Sweep screen, unless the sweep writes to named targets; what was measured is printed when it is left.

    Exits 0 if all was measured, 1 if a host is missing or the load failed, 2 for usage errors, 130, 143 or 129 if a
    signal ended it, after the results so far.
    """
    study = None if preset is None else fleet_preset(preset, len(fleet.names))
    if study is None and knobs.get("runtime") is not None:
        raise UsageError("--runtime: a sweep measures each point as long as it needs: leave it out")
    scratch = 1 if study is None else study.scratch_targets(HostSize.here())
    scenario = only_scenario(job_file, LoadOptions(**knobs), scratch)
    if scenario.turns or scenario.job.verify or scenario.job.until_steady:
        raise UsageError("fleet sweep: takes a job without turns, verification and --until-steady: leave them out")
    jobs = _jobs_of_hosts(job_file, scenario.job, allow_write, fleet, knobs)
    if study is None:
        lines: tuple[str, ...]
        plans: tuple[SweepPlan, ...] = (plan_fleet_sweep(jobs, vary, slo, destroy_data=destroy_data),)
        lines, show = (plans[0].words,), partial(show_scaling, as_json=driving.as_json)
    else:
        asked = PresetAsked(vary, slo, knobs)
        whole = plan_fleet_preset(study, jobs, asked, destroy_data=destroy_data)
        plans, lines = whole.plans, (whole.words, *whole.remarks)
        show = partial(show_study, preset=whole, as_json=driving.as_json)
    for line in lines:
        say(line)
    work = FleetSweepWork(plans, jobs, driving.window_s, destroy_data, driving.partial, trials)
    on_screen = is_terminal() and not (headless or driving.as_json or work.writes)
    if on_screen:
        go_on_in_child()
    source, recording = open_fleet(fleet, runs=True)
    recorded = source if recording is None else recording
    if on_screen:
        return recording_exit(recording, _sweep_on_screen(source, recording, work, show))
    return recording_exit(recording, sweep_fleet(source, recorded, work, show))


def _sweep_on_screen(
    source: FleetSource, recording: RecordingSource | None, work: FleetSweepWork, show: ShowMeasured
) -> int:
    from tui.app.start import start  # noqa: PLC0415 (the screen only)
    from tui.app_input import AppInput  # noqa: PLC0415 (the screen only)

    shown = HostOrFleet(source if recording is None else recording, source.controller)
    stopping, failures = StopFlag(), list[LunscopeError]()
    measuring = FleetMeasuring(source, work, stopping.wait, lambda _line: None)

    def measure() -> None:
        try:
            measuring.run()
        except LunscopeError as error:
            failures.append(error)
            shown.report(str(error))

    thread = Thread(target=measure, name="lunscope-fleet-sweep", daemon=True)

    def stop() -> None:
        stopping.set()
        thread.join()

    thread.start()
    code = start(AppInput(shown, recording=recording, fleet=shown, first_screen=_SWEEP_SCREEN), before_close=stop)
    if failures:
        say(str(failures[0]))
        return code or failures[0].exit_code
    return measuring.show(show) or code


def only_scenario(job_file: Path | None, options: LoadOptions, scratch: int = 1) -> Scenario:
    """Read the one job of a file and options; without a target it has so many scratch files.

    Raises:
        UsageError: the file has several jobs.
    """
    read = with_unreported_times(with_scratch(read_work(job_file, (), options), scratch))
    if read.has_groups or len(read.phases) != 1:
        raise UsageError(f"{safe_text(str(job_file))}: several jobs: the hosts of a fleet run one")
    for warning in read.warnings:
        say(warning)
    (scenario,) = read.scenarios
    return scenario
