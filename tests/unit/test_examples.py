"""The files of examples/ are read, and use no device or file of anybody."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.job.formats.choose import read_job
from engine.job.formats.read_job import ReadJob
from engine.job.scenario import validate_scenario
from engine.sweep.axes import parse_axis
from engine.sweep.limit import Limit
from engine.sweep.plan import make_plan

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(path.name for path in EXAMPLES.iterdir() if path.suffix != ".md")


def test_there_is_an_example_of_every_kind_and_each_is_described() -> None:
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert {Path(name).suffix for name in NAMES} == {".toml", ".fio", ".ndisk"}
    assert [name for name in NAMES if f"({name})" not in text] == []


@pytest.mark.parametrize("name", NAMES)
def test_examples_use_scratch_files_only(name: str) -> None:
    for scenario in read(name).scenarios:
        validate_scenario(scenario)
        assert all(target.path is None and not target.paths for target in scenario.job.targets)


@pytest.mark.parametrize("name", NAMES)
def test_examples_say_how_they_are_run(name: str) -> None:
    verb = "sweep" if read(name).search else "run"
    assert f"lunscope {verb} examples/{name}" in (EXAMPLES / name).read_text(encoding="utf-8")


def test_the_example_of_a_sweep_makes_a_plan() -> None:
    job = read("knee.fio")
    assert job.search is not None
    assert job.search.slo is not None
    plan = make_plan(job.scenarios[0].job, (parse_axis(job.search.vary),), (Limit.parse(job.search.slo),))
    (curve,) = plan.curves
    assert (min(curve.search.loads), max(curve.search.loads)) == (1, 64)


def read(name: str) -> ReadJob:
    return read_job(EXAMPLES / name)
