"""What `lunscope run` is to do: jobs from a file and options together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from engine.errors import UsageError
from engine.job.formats.choose import read_job
from engine.job.formats.read_job import ReadJob
from engine.job.scenario import Scenario
from engine.job.spec import JobSpec
from tui.options.job import LoadOptions, job_with, with_scratch_targets

_Command = TypeVar("_Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--section", "sections", multiple=True, metavar="NAME", help="Only this section of a fio job file."),
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
        help="Results as fio writes them, under the names that fio-plot reads; without a screen.",
    ),
)


DEFAULT_RUNTIME_S = 10.0


def bounded(job: JobSpec, last_turn_s: float = 0.0) -> JobSpec:
    """Give a job without a runtime one, past the last turn of its knobs: nobody is there to stop it."""
    return job if job.runtime_s is not None else replace(job, runtime_s=last_turn_s + DEFAULT_RUNTIME_S)


def file_options(command: _Command) -> _Command:
    """Add the options that name files of jobs and results."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def read_work(job_file: Path | None, sections: Sequence[str], options: LoadOptions) -> ReadJob:
    """Read what the file says, and merge the options over every job in it.

    Raises:
        LunscopeError: the file cannot be read.
        UsageError: it says what cannot be meant.
    """
    if sections and job_file is None:
        raise UsageError("--section: give the fio job file whose section it is")
    read = ReadJob((Scenario(JobSpec()),)) if job_file is None else read_job(job_file, sections)
    return for_every_job(read, lambda each: job_with(each.job, options))


def with_scratch(read: ReadJob, at_least: int) -> ReadJob:
    """Give jobs without any named target their scratch files."""
    return for_every_job(read, lambda each: with_scratch_targets(each.job, at_least))


def with_ends(read: ReadJob) -> ReadJob:
    """Give jobs without a runtime one."""
    return for_every_job(read, lambda each: bounded(each.job, each.last_turn_s))


def for_every_job(read: ReadJob, change: Callable[[Scenario], JobSpec]) -> ReadJob:
    """Replace the job of every scenario and keep its turns."""
    return replace(read, scenarios=tuple(replace(each, job=change(each)) for each in read.scenarios))
