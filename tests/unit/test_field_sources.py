"""Every figure says where it comes from."""

from __future__ import annotations

from collectors.all_subjects import SUBJECTS
from collectors.field import Field, Unit, with_sources
from collectors.tables.block.field_sources import BLOCK_SOURCES
from collectors.tables.block.fields import BLOCK_FIELDS


def test_every_figure_has_a_source() -> None:
    assert [(field.table, field.id) for subject in SUBJECTS for field in subject.fields if not field.source] == []


def test_sources_are_given_by_field_once() -> None:
    given = [field_id for ids in BLOCK_SOURCES.values() for field_id in ids]
    assert len(set(given)) == len(given)
    assert set(given) == {field.id for fields in BLOCK_FIELDS.values() for field in fields}


def test_a_source_of_its_own_stays() -> None:
    fields = (Field("a", "t", "A", Unit.COUNT, ""), Field("b", "t", "B", Unit.COUNT, "", source="own"))
    named = with_sources(fields, {"file": ("a", "b")}, "other")
    assert [field.source for field in named] == ["file", "own"]
    assert with_sources(fields[:1], {}, "other")[0].source == "other"
