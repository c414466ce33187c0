"""Every figure says where it comes from and how its values are merged."""

from __future__ import annotations

import re

import pytest

from collectors.all_subjects import SUBJECTS
from collectors.derive.quotients import Quotients
from collectors.field import Combine, Field, Unit
from collectors.subject import Subject
from collectors.tables.block.fields import DISK_FIELDS


def test_every_figure_has_a_source() -> None:
    assert [(field.table, field.id) for subject in SUBJECTS for field in subject.fields if not field.source] == []


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.table)
def test_ids_say_what_fields_declare(subject: Subject) -> None:
    known = {field.id: field for field in subject.fields}
    for field in subject.fields:
        assert bool(field.percent) == bool(re.search(r"(^|_)p\d+_ms$", field.id)), field.id
        assert field.peak == (field.id.endswith("max_ms") or field.id == "in_flight_peak"), field.id
        assert not field.per or known[field.per].unit is Unit.PER_SECOND, field.id
        assert not (field.sums and field.id.endswith("_per_s") and field.per), field.id
        assert not field.id.endswith("_per_io") or field.per, field.id


def test_what_paths_of_a_group_have_together_follows_from_the_field() -> None:
    combined = {field.id: field.combined for field in DISK_FIELDS}
    assert {combined[name] for name in ("iops", "bytes_per_s", "in_flight")} == {Combine.SUM}
    assert {combined[name] for name in ("await_ms", "queue_ms", "read_bytes_per_io")} == {Combine.MEAN}
    assert {combined[name] for name in ("max_ms", "service_max_ms")} == {Combine.LARGEST}
    assert {combined[name] for name in ("busy_pct", "p99_ms", "in_flight_peak")} == {Combine.NONE}


def test_a_mean_is_of_a_field_that_is_computed_from_sums() -> None:
    mean = Field("a_ms", "A", "", Unit.MILLISECONDS, "t", "", sums="time_ms", per="b_per_s")
    with pytest.raises(KeyError, match="b_per_s"):
        Quotients((mean,))
