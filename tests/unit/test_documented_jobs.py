"""The examples of docs/jobs.md are files that lunscope reads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.job.file import dump_job
from engine.job.formats.choose import read_job
from engine.job.formats.fio_file import read_fio
from engine.job.formats.fio_ignored import WITHOUT_EFFECT
from engine.job.formats.fio_job import DRIVEN
from engine.job.scenario import validate_scenario

TEXT = (Path(__file__).parents[2] / "docs" / "jobs.md").read_text()
EXAMPLES = {match[1]: match[2] for match in re.finditer(r"```\w*\n# (\S+)\n(.*?)```", TEXT, re.DOTALL)}


def test_there_is_an_example_of_every_kind() -> None:
    assert set(EXAMPLES) == {"nightly.toml", "again.toml", "disks.fio", "cache.ndisk"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_can_be_run(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(EXAMPLES[name])
    validate_scenario(read_job(path).scenarios[0])


def test_what_is_read_can_be_written_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "nightly.toml"
    path.write_text(EXAMPLES["nightly.toml"])
    job = read_job(path).scenarios[0].job
    path.write_text(dump_job(job))
    assert read_job(path).scenarios[0].job == job


def _options_of(title: str) -> list[str]:
    """Options in code of the table with this title; of the last one in its first column only."""
    table = TEXT.split(f"| {title}")[1].split("\n\n")[0]
    rows = [row.split(" | ") for row in table.splitlines()[2:]]
    cells = [row[1] if title.startswith("has") else row[0] for row in rows]
    return [name for cell in cells for name in re.findall(r"`([a-z_]+)(?:=[^`]*)?`", cell)]


def test_options_of_fio_in_the_table_are_driven_or_named(tmp_path: Path) -> None:
    driven, ignored = set(DRIVEN), set(WITHOUT_EFFECT)
    documented = set(re.findall(r"`([a-z_]+)(?:=[^`]*)?`", TEXT.split("| fio | here |")[1].split("| has no effect")[0]))
    ours = {"auto", "threads", "uring", "permutation", "rate", "arrival", "mode", "fsync_every", "flush", "include"}
    assert documented - ours <= driven
    assert set(_options_of("has no effect on the load")) <= ignored
    assert not set(_options_of("changes the load")) - {
        "run",
        "rw",
        "verify",
        "filesize",
        "latency_target",
        "rate_iops_min",
        "rate_min",
        "steadystate",
    } & (driven | ignored)
    path = tmp_path / "disks.fio"
    path.write_text(EXAMPLES["disks.fio"])
    assert read_fio(path).scenarios[0].job.knobs.stripe_width == 2
