"""The entries of the knobs: each is complete, and everything that is made of them has each of them."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from engine.job.describe import describe_knobs, knob_changes
from engine.job.distribution import Zipf
from engine.job.file import dump_job, parse_job
from engine.job.knobs import KNOBS, Knob, Knobs, knob_problems, knob_rows
from engine.job.spec import BlockShare, Flush, JobSpec, Mode, PathPolicy
from engine.results.result import nothing_measured
from engine.results.result_document import run_document
from engine.sweep.axes import SweepAxis
from tui.commands.run import command as run_command
from tui.load.form import FORM, form_values, job_from

DOCS = Path(__file__).parents[2] / "docs"
OTHER = {
    "queue_depth": 7,
    "stripe_width": 2,
    "blocks": (BlockShare(8192),),
    "read_pct": 30.0,
    "rate_iops": 1500.0,
    "write_blocks": (BlockShare(16384),),
    "distribution": Zipf(1.1),
    "write_distribution": Zipf(0.9),
    "mode": Mode.DSYNC,
    "threads": 3,
    "fsync_every": 5,
    "policy": PathPolicy.SERVICE_TIME,
    "flush": Flush.FDATASYNC,
}
"""A value of each that is not its default."""
EVERY = pytest.mark.parametrize("knob", KNOBS.values(), ids=lambda knob: knob.id)


def turned(knob: Knob) -> Knobs:
    return knob.turned(Knobs(), OTHER[knob.id])


@EVERY
def test_a_value_comes_back_from_a_job_file_a_turn_and_an_event(knob: Knob) -> None:
    knobs = turned(knob)
    assert knobs != Knobs()
    assert parse_job(dump_job(JobSpec(knobs=knobs))).knobs == knobs
    for value in (OTHER[knob.id], knob.default):
        line: dict[str, Any] = tomllib.loads(knob.line(value))
        assert knob.read(line[knob.key]) == value
    (change,) = knob_changes(Knobs(), knobs)
    assert (change.knob, knob.read(change.before), knob.read(change.after)) == (knob.id, knob.default, OTHER[knob.id])


def test_a_high_rate_has_all_its_digits_wherever_it_is_written() -> None:
    knobs, rate = Knobs(rate_iops=1_234_567.0), KNOBS["rate_iops"]
    (change,) = knob_changes(Knobs(), knobs)
    assert "at most 1234567 IOPS" in describe_knobs(knobs)
    assert change.text.endswith("unlimited -> 1234567")
    assert SweepAxis(rate, (900.0, 1_234_567.0)).text.endswith("=900,1234567")
    assert "1,234,567" in rate.shown(knobs, 1)
    assert form_values(JobSpec(knobs=knobs), destroy_data=False)["rate_iops"] == "1234567"
    assert "1234567" in dump_job(JobSpec(knobs=knobs))


@EVERY
def test_it_is_an_option_a_key_of_the_result_and_documented(knob: Knob) -> None:
    shown = CliRunner().invoke(run_command, ["--help"]).output
    assert f"--{knob.option} " in shown
    document = json.loads(json.dumps(run_document(nothing_measured(JobSpec(knobs=turned(knob))))))
    assert knob.id in document["job"]["knobs"]
    assert f"`--{knob.option}" in (DOCS / "load.md").read_text()


def test_what_fio_says_by_one_option_is_among_the_options_that_are_read() -> None:
    numbers = [(knob.fio_number, knob.fio) for knob in KNOBS.values() if knob.fio_number is not None]
    assert all(set(number.names) <= set(options or ()) for number, options in numbers)
    assert numbers


def test_positions_and_keys_are_unique() -> None:
    for places in ([knob.position for knob in KNOBS.values()], [row.position for _, row in knob_rows()]):
        assert len(set(places)) == len(places)
    assert len({knob.key for knob in KNOBS.values()}) == len(KNOBS) == len(OTHER)
    assert list(knob_problems(Knobs())) == []


def test_the_form_has_a_line_for_each_knob_that_asks_for_one() -> None:
    asking = [knob for knob in KNOBS.values() if knob.form is not None]
    fields = [field.id for field in FORM]
    for knob in asking:
        assert knob.form is not None
        assert knob.form.after in fields[: fields.index(knob.id)]
        values = form_values(JobSpec(knobs=turned(knob)), destroy_data=False)
        assert knob.of(job_from(values, JobSpec()).knobs) == OTHER[knob.id]
    assert asking


@pytest.mark.parametrize("policy", PathPolicy)
def test_the_name_of_a_policy_fits_its_row(policy: PathPolicy) -> None:
    knobs = Knobs(policy=policy)
    (row,) = (row for knob, row in knob_rows() if knob.key == "policy")
    assert row.brief is not None
    assert min(len(policy), len(row.brief(knobs))) <= row.width
