"""`lunscope sweep`: the load over axes of its knobs, and what the curves say."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from engine.errors import UsageError
from engine.isolation.study import NAME as ISOLATION
from engine.job.formats.read_job import ReadJob
from engine.job.scenario import Scenario
from engine.job.spec import JobSpec
from engine.rate_search.goal import parse_goal
from engine.replacing import replace
from engine.running.control import LoadControl
from engine.study.order import StudyOrder
from engine.sweep.axes import SweepAxis, axis_of_steps, parse_axis
from engine.sweep.limit import Limit
from engine.sweep.plan import make_plan, require_write_permission
from engine.sweep.presets.plans import PresetAsked
from engine.sweep.presets.registry import PRESETS
from engine.sweep.setting_axis import SETTINGS
from engine.sweep.tuning import check_tuning
from tui.headless.after_screens import sum_up_series
from tui.headless.isolation import IsolationLimits, run_isolation
from tui.headless.preset import LIST, list_presets, run_preset
from tui.headless.rates import RatesAsked, rate_ranges, search_rates
from tui.headless.sizing import parse_need, plan_need, size_from_file, sized, sizing_axes
from tui.headless.sweep import SweepOutput, run_sweep
from tui.options.alerts import alert_options, alerts_of_load
from tui.options.job import (
    LoadOptions,
    load_options,
    make_permissions,
    permission_options,
    precondition_option,
    with_scratch_targets,
)
from tui.options.reading import cost_option, root_options, tier_option
from tui.options.run_jobs import choose_scratch_folder, read_work, section_option, with_unreported_times
from tui.options.session import session_options
from tui.options.watching import Watching, open_source


@click.command(short_help="the load over axes of its knobs: the knee, and the best values")
@click.argument("job_file", metavar="[JOB]", required=False, type=click.Path(path_type=Path))
@section_option
@click.option(
    "--vary",
    multiple=True,
    metavar="KNOB=VALUES",
    help="An axis: qd=1..256 (doubled, and finer around the knee), bs=4k..64k, stripe_width=1,2,4, "
    f"{', '.join(SETTINGS)} (the load begins anew), or tune.nr_requests=32,128 (lunscope tune list); repeat for more.",
)
@click.option(
    "--slo",
    multiple=True,
    metavar="LIMIT",
    help="Best values within a limit, too, as p99<=5ms; repeat for more. Without --vary: the highest rate within it.",
)
@click.option(
    "--goal",
    metavar="KEY=VALUE[,...]",
    help="Of the search for a rate. [width=5%,exceed=0.5,sum=21s,trial=1s,first=500ms]",
)
@click.option(
    "--open-loop",
    "open_loop",
    is_flag=True,
    help="After the closed loops, an open loop at 10 % to 100 % of the highest throughput of each curve.",
)
@click.option(
    "--need",
    metavar="TEXT",
    help="How many disks it takes, at which queue depth, such as '300k IOPS, p99<2ms' or '2 GB/s': measured with 1, "
    "2, 4 ... of the targets, and extrapolated to twice as many at most.",
)
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Of --need: measure nothing, read a recording or what sweep --json printed.",
)
@click.option(
    "--preset",
    metavar="NAME",
    help=f"Repeat a published study, in its tables: {', '.join((*PRESETS, ISOLATION))}; list describes them. "
    "--runtime is the time of each point. [5s]",
)
@click.option(
    "--toggle",
    metavar="COMMAND",
    help="Of --preset flashcache: a shell command that turns the cache on, run between the two halves.",
)
@click.option(
    "--toggle-back",
    "toggle_back",
    metavar="COMMAND",
    help="Of --preset flashcache: a shell command that turns the cache off again, run after both halves; the first is "
    "measured once more then, and what differs between the two is undecided.",
)
@click.option(
    "--cap",
    multiple=True,
    metavar="LIMIT",
    help="Of --preset isolation: a limit on the other load, riops=500, rbps=10m or both; none: without any; repeat for "
    "more. [a half and a tenth of its IOPS]",
)
@click.option(
    "--within",
    type=float,
    metavar="TIMES",
    help="Of --preset isolation: how many times its response time alone the load may have. [1.5]",
)
@click.option(
    "--trials",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Keep each measurement in FILE as it is made; a sweep that was ended, however, goes on from there.",
)
@click.option("--headless", is_flag=True, help="No screen, even on a terminal.")
@click.option("--json", "as_json", is_flag=True, help="No screen; one JSON document (lunscope.sweep/1) at the end.")
@session_options
@load_options
@precondition_option
@permission_options
@tier_option
@cost_option
@alert_options
@root_options
def command(
    job_file: Path | None,
    *,
    vary: tuple[str, ...],
    sections: tuple[str, ...],
    slo: tuple[str, ...],
    goal: str | None,
    open_loop: bool,
    need: str | None,
    source: Path | None,
    preset: str | None,
    toggle: str | None,
    toggle_back: str | None,
    cap: tuple[str, ...],
    within: float | None,
    trials: Path | None,
    headless: bool,
    as_json: bool,
    record: Path | None,
    overwrite: bool,
    interval: float,
    scratch_dir: Path | None,
    precondition: bool,
    allow_write: tuple[str, ...],
    destroy_data: bool,
    tier: str,
    alert: tuple[str, ...],
    alert_command: str | None,
    procfs: Path,
    sysfs: Path,
    **knobs: Any,  # noqa: ANN401 (the options of LoadOptions, which checks their names)
) -> int:
    """Measure every combination of the axes, each as long as its figures need, and say where the knee is.

    The first of qd, threads and stripe_width that varies is the load: for each combination of the other axes there is
    a curve over it, with three optima: best balance of throughput and latency, best within each --slo, and highest
    throughput. A curve without a knee is called flat, falling, rising or still warming up. On a terminal the points and
    what they say are on the screen; the answer is printed when it is left.

    With --slo and no --vary, or with --vary rate=LOW..HIGH (rate=.. for any), it searches the highest rate at which
    I/Os may arrive, whatever completes, so that each limit is kept.

    With --need it says how many disks a throughput within limits takes, at which queue depth, or why no number does.

    With --preset it measures the axes of a published study, each point once, and prints the study's tables.

    Exits 0 if all was measured, 1 if the load or any of its I/Os failed or points are missing, 2 for usage
    errors and refused targets, 130, 143 or 129 if SIGINT, SIGTERM or SIGHUP ended it, after the results so far.
    """
    if preset == LIST:
        return list_presets()
    if source is not None:
        options = {"--vary": vary, "--slo": slo, "--preset": preset, "--trials": trials, "--record": record}
        loads = {f"--{name.replace('_', '-')}": value for name, value in knobs.items()}
        others = {**options, "--open-loop": open_loop, "JOB": job_file, **loads}
        return size_from_file(source, need, others, as_json=as_json)
    wanted = None if need is None else parse_need(need)
    read = read_work(job_file, sections, LoadOptions(**knobs))
    if read.search is not None:
        vary = vary or (read.search.vary,)
        slo = slo or ((read.search.slo,) if read.search.slo else ())
    rates, closed = rate_ranges(vary)
    axes, limits = tuple(map(parse_axis, closed)), tuple(map(_limit, slo))
    if preset is None:
        read, axes = _with_steps(read, axes)
    wants_rates = rates is not None or (bool(limits) and not axes)
    _check_open_loop(goal, axes, preset, wants_rates=wants_rates, open_loop=open_loop)
    _check_toggle(toggle, toggle_back, preset)
    _check_isolation(preset, cap, within)
    _check_need(need, preset, is_else=wants_rates or open_loop or bool(limits))
    permissions = make_permissions(
        allow_write, destroy_data=destroy_data, typed=knobs["target"], scratch_dir=scratch_dir
    )
    choose_scratch_folder(scratch_dir, read.scratch_folder)
    has_screen = sys.stdin.isatty() and sys.stdout.isatty() and not (headless or as_json)
    alerts = alerts_of_load(alert, alert_command, on_screen=has_screen, is_recorded=record is not None)
    watching = Watching(interval, procfs, sysfs, record, overwrite, tier, alerts)
    output = SweepOutput(watching, as_json, trials, read.warnings, precondition, show_order if has_screen else None)
    if preset is not None:
        job, asked = _job(read.scenarios, (), has_runtime=False), PresetAsked(vary, slo, knobs, toggle, toggle_back)
        if preset == ISOLATION:
            return run_isolation(job, IsolationLimits(cap, within), asked, permissions, output)
        return run_preset(job, preset, asked, permissions, output)
    if wanted is not None:
        axes = sizing_axes(axes, read.scenarios[0].job, knobs)
    job = _job(read.scenarios, axes, has_runtime=knobs.get("runtime") is not None)
    if wants_rates or open_loop:
        has_depth = _has_depth(job_file, knobs)
        searched = RatesAsked(axes, limits, parse_goal(goal or ""), rates, has_depth=has_depth, open_loop=open_loop)
        return search_rates(job, searched, permissions, output)
    plan = make_plan(job, axes, limits) if wanted is None else plan_need(job, axes, wanted)
    require_write_permission(plan, permissions)
    check_tuning(plan)
    return run_sweep(plan, permissions, output, None if wanted is None else sized(wanted))


def _check_open_loop(
    goal: str | None, axes: tuple[SweepAxis, ...], preset: str | None, *, wants_rates: bool, open_loop: bool
) -> None:
    if goal is not None and not wants_rates:
        raise UsageError("--goal is of the search for a rate: give --vary rate=.. as well, or leave out --vary")
    if open_loop and (wants_rates or preset is not None or not axes):
        raise UsageError("--open-loop follows closed loops: give --vary qd=1..64 or the like, and no rate or --preset")


def _check_need(need: str | None, preset: str | None, *, is_else: bool) -> None:
    if need is not None and (is_else or preset is not None):
        raise UsageError("--need: it has its limits itself, of closed loops: leave out --slo, rates and --preset")


def _check_toggle(toggle: str | None, toggle_back: str | None, preset: str | None) -> None:
    for option, command in (("--toggle", toggle), ("--toggle-back", toggle_back)):
        if command is not None and preset is None:
            raise UsageError(f"{option} is of a preset: give --preset flashcache as well")


def _with_steps(read: ReadJob, axes: tuple[SweepAxis, ...]) -> tuple[ReadJob, tuple[SweepAxis, ...]]:
    """Make the steps of a job file an axis, unless --vary has that knob."""
    read = with_unreported_times(read)
    steps = axis_of_steps(read.scenarios[0])
    if steps is None or len(read.scenarios) > 1:
        return read, axes
    words = [f"{steps.text}: the steps of the job file; each is measured as long as it needs"]
    if any(axis.knob is steps.knob for axis in axes):
        words = [f"the steps of the job file, {steps.text}, are replaced by --vary"]
    else:
        axes = (steps, *axes)
    alone = replace(read.scenarios[0], turns=())
    return replace(read, phases=(alone,), warnings=(*read.warnings, *words)), axes


def _check_isolation(preset: str | None, cap: tuple[str, ...], within: float | None) -> None:
    for name, value in (("--cap", cap), ("--within", within)):
        if value and preset != ISOLATION:
            raise UsageError(f"{name}: only of --preset {ISOLATION}: leave it out")


def _has_depth(job_file: Path | None, knobs: dict[str, Any]) -> bool:
    """Whether somebody chose the queue depth."""
    return job_file is not None or knobs.get("qd") is not None


def _limit(text: str) -> Limit:
    try:
        return Limit.parse(text)
    except UsageError as error:
        raise UsageError(f"--slo: {error}") from None


def _job(scenarios: tuple[Scenario, ...], axes: tuple[SweepAxis, ...], *, has_runtime: bool) -> JobSpec:
    """Make the one job of a sweep, with scratch files for the widest stripe where no target is named.

    Raises:
        UsageError: there are several, it turns knobs itself, or it asks for what a sweep does not do.
    """
    if len(scenarios) > 1 or scenarios[0].turns:
        raise UsageError(
            "a sweep takes one job in which one knob turns at most: choose one with --section, or give its options"
        )
    job = replace(scenarios[0].job, runtime_s=None, io_bytes=None, loops=None, ramp_s=0.0)
    if has_runtime:
        raise UsageError("--runtime: a sweep measures each point as long as it needs: leave it out")
    if job.until_steady:
        raise UsageError("--until-steady: a sweep measures each point as long as it needs: leave it out")
    if job.verify:
        raise UsageError("--verify: a sweep checks no data: leave it out")
    widths = [value for axis in axes if axis.knob.id == "stripe_width" for value in axis.values]
    return with_scratch_targets(job, max(widths, default=1))


def show_order(order: StudyOrder, watching: Watching) -> int:
    """Measure studies on their screen; returns the exit code."""
    from tui.app.start import start  # noqa: PLC0415 (as textual)
    from tui.app_input import AppInput  # noqa: PLC0415 (the screen only)
    from tui.load.load_controller import LoadController  # noqa: PLC0415 (the screen only)
    from tui.sweep.series import SessionGroup, SweepSeries  # noqa: PLC0415 (the screen only)

    control = LoadControl()
    source, recording = open_source(watching, control)
    controller = LoadController(control, order.first.plan.armed, order.permissions, sysfs=watching.sysfs)
    series = SweepSeries(SessionGroup.of(order, controller))
    code = start(
        AppInput(
            source,
            controller,
            recording,
            sweeps=series,
            alert_service=watching.alerts,
            is_summed_up=True,
            tune_root=watching.sysfs,
        )
    )
    return sum_up_series(series, control, recording, code, is_measured_for=True)
