"""Job files of all formats, by suffix: .fio, .ndisk, else TOML, a scenario where it has a `schema`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from engine.errors import UsageError, unusable
from engine.job.file import dump_job, parse_job, parse_toml
from engine.job.formats.read_job import ReadJob
from engine.job.formats.text_file import read_text
from engine.job.scenario import Scenario, dump_scenario, parse_scenario
from engine.text import safe_text

FIO, NDISK = ".fio", ".ndisk"
_NO_RESPONSE_TIMES = "limits and edges of response times are left out, which a fio job file cannot hold: a .toml can"


def read_job(path: Path, sections: Sequence[str] = ()) -> ReadJob:
    """Read a job file; `sections` chooses among those of a fio job file.

    Raises:
        LunscopeError: it cannot be read.
        UsageError: it cannot be meant; one line that names file, line and key.
    """
    suffix = path.suffix.lower()
    # A job without a file, which most are, is on the screen sooner without these.
    if suffix == FIO:
        from engine.job.formats.fio_file import read_fio  # noqa: PLC0415

        return read_fio(path, sections)
    if sections:
        raise UsageError(f"--section: {safe_text(str(path))} is no fio job file: those end in {FIO}")
    if suffix == NDISK:
        from engine.job.formats.ndisk import read_ndisk  # noqa: PLC0415

        return read_ndisk(path)
    text, shown = read_text(path), safe_text(str(path))
    if "schema" not in parse_toml(text, shown):
        return ReadJob((Scenario(parse_job(text, shown)),))

    return ReadJob((parse_scenario(text, shown),))


def save_job(path: Path, scenarios: Sequence[Scenario]) -> tuple[str, ...]:
    """Write jobs as fio job file where the suffix says so, else one as TOML, never over a file.

    Returns:
        What the file leaves out although it is no part of the load, a line for each.

    Raises:
        UsageError: the format cannot express the job, or there is a file of that name.
        LunscopeError: it cannot be written.
    """
    if path.suffix.lower() == FIO:
        from engine.job.formats.fio_writing import dump_fio  # noqa: PLC0415

        text = dump_fio(scenarios)
    elif path.suffix.lower() == NDISK:
        raise UsageError(f"--save-job: {safe_text(str(path))}: {NDISK} files are read only: save it as .toml or {FIO}")
    elif len(scenarios) > 1:
        names = ", ".join(scenario.job.name for scenario in scenarios)
        raise UsageError(
            f"--save-job: {len(scenarios)} jobs, one after another: choose with --section: {safe_text(names)}"
        )
    else:
        (scenario,) = scenarios
        text = dump_scenario(scenario) if scenario.turns else dump_job(scenario.job)
    write_new(path, (text,))
    reports = any(scenario.job.response_limits_s or scenario.job.response_edges_s for scenario in scenarios)
    return (_NO_RESPONSE_TIMES,) if reports and path.suffix.lower() == FIO else ()


def write_new(path: Path, parts: Iterable[str]) -> None:
    """Write a new text file; what exists is left alone, links included.

    Raises:
        LunscopeError: it exists, or cannot be written.
    """
    shown = safe_text(str(path))
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.writelines(parts)
    except FileExistsError:
        raise UsageError(f"{shown}: exists already: give another name, or remove it") from None
    except OSError as error:
        raise unusable(f"{shown}: cannot be written: {error.strerror}", error) from None
