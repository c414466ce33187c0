"""`lunscope run`: watch this host and drive a load, with or without screens."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from engine.errors import UsageError
from engine.job.formats.choose import save_job as write_job
from engine.job.formats.read_job import ReadJob
from engine.job.scenario import require_permission, validate_scenario, validate_together
from engine.job.validate import validate
from engine.text import safe_text
from tui.headless.leaving import go_on_in_child
from tui.headless.metered import require_metrics_file
from tui.headless.precondition import precondition_code, preconditioning, run_precondition
from tui.headless.run_output import ResultOutput
from tui.headless.runs import run_headless
from tui.options.alerts import alert_options, alerts_of_load
from tui.options.job import LoadOptions, load_options, make_permissions, permission_options, precondition_option
from tui.options.reading import cost_option, root_options, tier_option
from tui.options.run_jobs import (
    choose_scratch_folder,
    file_options,
    read_work,
    with_ends,
    with_scratch,
    with_steady_limits,
    with_steady_search,
)
from tui.options.session import load_metrics_option, session_options
from tui.options.watching import Watching
from tui.process.standard_streams import say

SCREEN_TARGETS = 4
"""Scratch files made for the screen, so that the stripe width can be turned."""


@click.command(short_help="watch this host and drive a load")
@click.argument("job_file", metavar="[JOB]", required=False, type=click.Path(path_type=Path))
@load_options
@precondition_option
@permission_options
@click.option("--headless", is_flag=True, help="No screen, even on a terminal; runs 10 s unless --runtime is given.")
@click.option("--json", "as_json", is_flag=True, help="No screen; one JSON document (lunscope.run/1) at the end.")
@session_options
@load_metrics_option
@file_options
@tier_option
@cost_option
@alert_options
@root_options
def command(
    job_file: Path | None,
    *,
    sections: tuple[str, ...],
    save_job: Path | None,
    fio_json: Path | None,
    precondition: bool,
    allow_write: tuple[str, ...],
    destroy_data: bool,
    headless: bool,
    as_json: bool,
    record: Path | None,
    overwrite: bool,
    interval: float,
    metrics_textfile: Path | None,
    scratch_dir: Path | None,
    tier: str,
    alert: tuple[str, ...],
    alert_command: str | None,
    procfs: Path,
    sysfs: Path,
    **knobs: Any,  # noqa: ANN401 (the options of LoadOptions, which checks their names)
) -> int:
    """Watch this host and drive a load: with the screens on a terminal, else for a bounded time with a summary.

    JOB is a TOML file with the names of the options below, a scenario that turns knobs at set times (as `export
    --format scenario` writes it), a fio job file (.fio) or an NDISK parameter file (.ndisk); options override it.
    Without any target a scratch file is made, filled and removed. Reading is the default: lunscope writes only to
    files it made itself, unless --allow-write names a target.

    Outstanding I/Os are reported after a second. The end waits for them for --give-up TIME, or until a second signal;
    then the summary lists them.

    Exits 0 if the load ran, 1 if it or any of its I/Os failed or did not complete in time, --verify found damage, or
    --until-steady saw no steady state, 2 for usage errors and refused targets, 130, 143 or 129 if SIGINT, SIGTERM or
    SIGHUP ended it, after the summary.
    """
    require_metrics_file(metrics_textfile)
    read = with_steady_search(read_work(job_file, sections, LoadOptions(**knobs)))
    permissions = make_permissions(
        allow_write, destroy_data=destroy_data, typed=knobs["target"], scratch_dir=scratch_dir
    )
    choose_scratch_folder(scratch_dir, read.scratch_folder, runs=save_job is None)
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    on_screen = terminal and not (headless or as_json or save_job or fio_json or read.is_timed)
    alerts = alerts_of_load(alert, alert_command, on_screen=on_screen, is_recorded=record is not None)
    watching = Watching(interval, procfs, sysfs, record, overwrite, tier, alerts, metrics_textfile)
    read = with_steady_limits(with_scratch(read, SCREEN_TARGETS if on_screen else 1))
    for warning in read.warnings:
        say(warning)
    if save_job is not None:
        return _save(read, save_job)
    if on_screen:
        if read.has_groups:
            raise UsageError(f"{read.at_once}: there is no screen for them: add --headless")
        (only,) = read.scenarios
        validate(only.job)
        first = preconditioning(only.job, permissions, wanted=precondition)
        go_on_in_child()
        code = precondition_code(first)
        if code:
            return code
        from tui.commands.watched_on_screen import watch_host  # noqa: PLC0415 (textual is loaded for the screen only)

        return watch_host(watching, only.job, permissions)
    read = with_ends(read)
    for phase in read.jobs:
        validate_together(phase)
    require_permission(read.jobs, permissions)
    if precondition and (len(read.phases) > 1 or read.has_groups):
        raise UsageError("--precondition: the file has several jobs: choose one with --section")
    first = preconditioning(read.jobs[0][0].job, permissions, wanted=precondition)
    go_on_in_child()
    done = run_precondition(first)
    if done is not None and done.code:
        return done.code
    return run_headless(read, permissions, watching, ResultOutput(as_json, fio_json, done))


def _save(read: ReadJob, path: Path) -> int:
    for each in read.scenarios:
        validate_scenario(each)
    for line in write_job(path, read.scenarios):
        say(f"{safe_text(str(path))}: {line}")
    return 0
