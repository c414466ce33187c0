"""What `lunscope run` is to do: a job or scenario from files and options together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import click

from engine.errors import UsageError
from engine.job import JobSpec
from engine.jobformats.formats import read_job
from engine.jobformats.read_job import ReadJob
from engine.scenario import Scenario
from engine.scenario_file import load_scenario
from tui.headless import bounded
from tui.options import LoadOptions, job_with, with_scratch_targets

_Command = TypeVar("_Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--scenario",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Turn knobs at set times, without a screen: what `export --format scenario` writes.",
    ),
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


def scenario_options(command: _Command) -> _Command:
    """Add the options that name files of jobs and results."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True)
class Work:
    """A job with the turns of its knobs, and what belongs to the file it is from."""

    read: ReadJob

    @property
    def scenario(self) -> Scenario:
        """What to drive."""
        return self.read.scenario

    def with_scratch_targets(self, at_least: int) -> Work:
        """Give a job without any named target its scratch files."""
        return self.with_job(with_scratch_targets(self.scenario.job, at_least))

    def bounded(self) -> Work:
        """Give a job without a runtime one."""
        return self.with_job(bounded(self.scenario.job, self.scenario.last_turn_s))

    def with_job(self, job: JobSpec) -> Work:
        """Replace the job and keep the turns."""
        return Work(replace(self.read, scenario=replace(self.scenario, job=job)))


def read_work(job_file: Path | None, scenario: Path | None, sections: Sequence[str], options: LoadOptions) -> Work:
    """Read what the files say, and merge the options over it.

    Raises:
        LunscopeError: a file cannot be read.
        UsageError: it says what cannot be meant, or two files say what to drive.
    """
    if scenario is not None and job_file is not None:
        raise UsageError("--scenario: has a job of its own: give it without JOB")
    if sections and job_file is None:
        raise UsageError("--section: give the fio job file whose section it is")
    if scenario is not None:
        read = ReadJob(load_scenario(scenario))
    elif job_file is not None:
        read = read_job(job_file, sections)
    else:
        read = ReadJob(Scenario(JobSpec()))
    return Work(read).with_job(job_with(read.scenario.job, options))
