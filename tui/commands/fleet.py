"""`lunscope fleet`: one picture and one load over many hosts, over the operator's own ssh."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from collectors.fleet.fleet_load import DEFAULT_WINDOW_S
from collectors.fleet.fleet_source import FleetSource, HostOrFleet
from collectors.fleet.host_jobs import host_jobs
from collectors.fleet.node_sets import expand
from collectors.sources.recorder import RecordingSource
from engine.errors import UsageError
from engine.job.scenario import Scenario
from engine.job.sizes import parse_duration
from engine.job.validate import validate
from engine.text import safe_text
from tui.headless.fleet_run import FleetWork, print_fleet_result, run_fleet
from tui.headless.fleet_sweep import FleetSweepWork, plan_fleet_sweep, sweep_fleet
from tui.headless.fleet_watch import watch_fleet
from tui.headless.leaving import go_on_in_child
from tui.options.fleet import FleetOptions, fleet_options, open_fleet
from tui.options.job import LoadOptions, load_options, permission_options
from tui.options.numbers import WHOLE
from tui.options.watching import recording_exit
from tui.options.work import read_work, with_ends, with_scratch


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
    if sys.stdin.isatty() and sys.stdout.isatty() and not (headless or as_json):
        return recording_exit(recording, _on_screen(source, recording))
    return recording_exit(recording, watch_fleet(shown, source, count, as_json=as_json))


def _on_screen(source: FleetSource, recording: RecordingSource | None) -> int:
    from tui.start import start_live  # noqa: PLC0415 (textual is loaded for the screen only)

    go_on_in_child()
    shown = HostOrFleet(source if recording is None else recording, source.controller)
    return start_live(shown, recording=recording, fleet=shown)


@command.command(short_help="one load over all hosts")
@click.argument("job_file", metavar="[JOB]", required=False, type=click.Path(path_type=Path))
@fleet_options
@load_options
@permission_options
@click.option(
    "--window",
    default=f"{DEFAULT_WINDOW_S * 1000:g}ms",
    show_default=True,
    metavar="TIME",
    help="Within this time of each other all hosts start and turn; refused where clocks are not known so well.",
)
@click.option("--partial", is_flag=True, help="Go on without hosts that do not answer.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document (lunscope.fleet-run/1) at the end.")
def run(
    job_file: Path | None,
    *,
    fleet: FleetOptions,
    allow_write: tuple[str, ...],
    destroy_data: bool,
    window: str,
    partial: bool,
    as_json: bool,
    **knobs: Any,  # noqa: ANN401 (the options of LoadOptions, which checks their names)
) -> int:
    """Drive one load over all hosts: the same job on each, started and turned at one time.

    JOB and its options are those of `lunscope run`; without a target each host makes a scratch file. --target PATH is
    a target of every host, --target HOSTS:PATH only there. Writing needs --allow-write HOSTS:PATH, and the guard of
    each host decides. The load ends on every host before 3 s have passed without a word from here.

    Exits 0, 1 if I/Os failed or a host is missing, 2 for usage errors, 130, 143 or 129 if a signal ended it.
    """
    scenario = only_scenario(job_file, LoadOptions(**knobs))
    jobs = host_jobs(scenario.job, allow_write, fleet.names, lambda nodes: expand(nodes, None))
    for each in jobs.values():
        validate(each.job)
    work = FleetWork(jobs, scenario.turns, parse_duration(window), destroy_data, partial)
    source, recording = open_fleet(fleet, runs=True)
    result, code = run_fleet(source if recording is None else recording, source, work)
    print_fleet_result(result, as_json=as_json)
    return recording_exit(recording, code)


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
    "--window",
    default=f"{DEFAULT_WINDOW_S * 1000:g}ms",
    show_default=True,
    metavar="TIME",
    help="As in lunscope fleet run.",
)
@click.option("--partial", is_flag=True, help="Go on without hosts that do not answer at the beginning.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document (lunscope.fleet-sweep/1) at the end.")
def sweep(
    job_file: Path | None,
    *,
    fleet: FleetOptions,
    allow_write: tuple[str, ...],
    destroy_data: bool,
    vary: tuple[str, ...],
    slo: tuple[str, ...],
    window: str,
    partial: bool,
    as_json: bool,
    **knobs: Any,  # noqa: ANN401 (the options of LoadOptions, which checks their names)
) -> int:
    """Measure one load over 1, 2, 4 ... hosts, and say up to how many it scales.

    The first hosts of the set drive each point, started, turned and measured at one time; percentiles are of all I/Os.
    Each point is measured as long as its figures need, as in `lunscope sweep`.

    Exits 0 if all was measured, 1 if a host is missing or the load failed, 2 for usage errors, 130, 143 or 129 if a
    signal ended it, after the results so far.
    """
    if knobs.get("runtime") is not None:
        raise UsageError("--runtime: a sweep measures each point as long as it needs: leave it out")
    scenario = only_scenario(job_file, LoadOptions(**knobs))
    if scenario.turns or scenario.job.verify or scenario.job.until_steady:
        raise UsageError("fleet sweep: takes a job without turns, verification and --until-steady: leave them out")
    jobs = host_jobs(scenario.job, allow_write, fleet.names, lambda nodes: expand(nodes, None))
    plan = plan_fleet_sweep(jobs, vary, slo, destroy_data=destroy_data)
    work = FleetSweepWork(plan, jobs, parse_duration(window), destroy_data, partial)
    click.echo(f"lunscope: {plan.words}", err=True)
    source, recording = open_fleet(fleet, runs=True)
    return recording_exit(recording, sweep_fleet(source, recording, work, as_json=as_json))


def only_scenario(job_file: Path | None, options: LoadOptions, sections: Sequence[str] = ()) -> Scenario:
    """Read the one job of a file and options, bounded in time.

    Raises:
        UsageError: the file has several jobs.
    """
    read = with_ends(with_scratch(read_work(job_file, sections, options), 1))
    if read.has_groups or len(read.phases) != 1:
        raise UsageError(f"{safe_text(str(job_file))}: several jobs: the hosts of a fleet run one")
    (scenario,) = read.scenarios
    return scenario
