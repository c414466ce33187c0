"""The jobs of `lunscope run`, from a file and options."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from engine.config import SCRATCH_ENV
from engine.errors import UsageError
from engine.job.formats.choose import read_job
from engine.job.formats.read_job import ReadJob
from engine.job.group import LoadGroup
from engine.job.scenario import Scenario
from engine.job.sizes import format_duration
from engine.job.spec import DEFAULT_STEADY_ROUND_S, JobSpec
from engine.job.validate import MIN_STEADY_ROUND_S
from engine.replacing import replace
from engine.statistics.steady_state import MOST_ROUNDS, WINDOW_ROUNDS
from engine.text import safe_text
from tui.options.job import LoadOptions, job_with, with_scratch_targets

_Command = TypeVar("_Command", bound=Callable[..., Any])

section_option = click.option(
    "--section", "sections", multiple=True, metavar="NAME", help="Only this section of a fio job file."
)
_OPTIONS = (
    section_option,
    click.option(
        "--save-job",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Write the job as FILE.toml or FILE.fio instead of running it.",
    ),
    click.option(
        "--fio-json",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="DIR",
        help="Write results in fio's JSON format, with the file names that fio-plot reads; without a screen.",
    ),
)


DEFAULT_RUNTIME_S = 10.0


def bounded(job: JobSpec, last_turn_s: float = 0.0) -> JobSpec:
    """Set a runtime if a job has none, beyond its last knob turn: it runs unattended."""
    return job if job.has_end else replace(job, runtime_s=last_turn_s + DEFAULT_RUNTIME_S)


_MARGIN_S = 1.0
"""How late the first round may begin."""
_ROUND_LATE_S = 0.1
"""How much longer a round may be than it should."""


def with_steady_search(read: ReadJob) -> ReadJob:
    """Let a job that looks for a steady state end in one by the rule of SNIA, over as long a time as it asks for.

    Raises:
        UsageError: it looks for something else, or one section after another does.
    """
    search = read.search
    if search is None or (search.is_steady and all(each.job.until_steady for phase in read.jobs for each in phase)):
        return read
    if not search.is_steady or read.has_groups or len(read.phases) > 1:
        raise UsageError(search.refusal)
    read = for_every_job(read, lambda each: _until_steady(each.job, search.steady_s))
    round_s = read.jobs[0][0].job.steady_round_s
    rule = f"the SNIA rule over {WINDOW_ROUNDS} rounds of {format_duration(round_s)}"
    warning = f"steadystate={search.steady_limit}: it ends by {rule}, which is another one, or at its runtime"
    return replace(read, warnings=(*read.warnings, warning))


def _until_steady(job: JobSpec, steady_s: float | None) -> JobSpec:
    is_chosen = steady_s is None or job.steady_round_s != DEFAULT_STEADY_ROUND_S
    round_s = job.steady_round_s if is_chosen else max((steady_s or 0.0) / WINDOW_ROUNDS, MIN_STEADY_ROUND_S)
    return replace(job, until_steady=True, steady_round_s=round_s)


def with_steady_limits(read: ReadJob) -> ReadJob:
    """Set the limit of jobs that end once they are steady and have no other: the most rounds of the specification."""
    return for_every_job(read, lambda each: _steady_limit(each.job))


def _steady_limit(job: JobSpec) -> JobSpec:
    if not job.until_steady or job.has_end:
        return job
    return replace(job, runtime_s=job.ramp_s + MOST_ROUNDS * (job.steady_round_s + _ROUND_LATE_S) + _MARGIN_S)


def file_options(command: _Command) -> _Command:
    """Add the options that name files of jobs and results."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def read_work(job_file: Path | None, sections: Sequence[str], options: LoadOptions) -> ReadJob:
    """Read the file, and merge the options over every job in it.

    Raises:
        LunscopeError: the file cannot be read.
        UsageError: its content is invalid.
    """
    if sections and job_file is None:
        raise UsageError("--section: give the fio job file whose section it is")
    read = ReadJob((Scenario(JobSpec()),)) if job_file is None else read_job(job_file, sections)
    return for_every_job(read, lambda each: job_with(each.job, options))


def choose_scratch_folder(option: Path | None, of_file: Path | None, *, runs: bool = True) -> None:
    """Set the folder of scratch files; one that a job file names must exist, as a job file makes nothing outside.

    Raises:
        UsageError: it does not, and the job is to run.
    """
    if runs and option is None and of_file is not None and not of_file.is_dir():
        raise UsageError(
            f"directory={safe_text(str(of_file))}: no such folder, and a job file makes none: make it, or give "
            "--scratch-dir"
        )
    if folder := option or of_file:
        os.environ[SCRATCH_ENV] = str(folder)


def with_scratch(read: ReadJob, at_least: int) -> ReadJob:
    """Add scratch files to jobs without named targets."""
    return for_every_job(read, lambda each: with_scratch_targets(each.job, at_least))


def with_unreported_times(read: ReadJob) -> ReadJob:
    """Add a warning where a job asks for shares or a histogram of response times, which `run` alone reports."""
    if not any(each.job.response_limits_s or each.job.response_edges_s for phase in read.jobs for each in phase):
        return read
    return replace(read, warnings=(*read.warnings, _ONLY_RUN))


_ONLY_RUN = "shares and histogram of response times are not reported: `lunscope run` does; a limit of a sweep is --slo"


def with_ends(read: ReadJob) -> ReadJob:
    """Set a runtime for jobs that have none."""
    return for_every_job(read, lambda each: bounded(each.job, each.last_turn_s))


def for_every_job(read: ReadJob, change: Callable[[Scenario], JobSpec]) -> ReadJob:
    """Replace the job of every scenario and of every load of a group, and keep turns."""
    return replace(read, phases=tuple(_changed(phase, change) for phase in read.phases))


def _changed(phase: Scenario | LoadGroup, change: Callable[[Scenario], JobSpec]) -> Scenario | LoadGroup:
    if isinstance(phase, Scenario):
        return replace(phase, job=change(phase))
    return LoadGroup(tuple(replace(load, job=change(Scenario(load.job))) for load in phase.loads))
