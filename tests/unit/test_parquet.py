"""Parquet: the same rows and figures as the text formats, with units and tiers, in groups of bounded size."""

from __future__ import annotations

import csv
import math
import resource
import sys
from pathlib import Path

import pytest

from collectors.registry import fields_of
from collectors.reports import parquet
from collectors.reports.export import Selection, export_lines
from collectors.reports.parquet import write_parquet
from collectors.session.reader import SessionReader
from collectors.session.writer import SessionWriter
from engine.errors import LunscopeError, UsageError
from tests.session_samples import Machine

pyarrow_parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow: not installed")
read_table, ParquetFile = pyarrow_parquet.read_table, pyarrow_parquet.ParquetFile


@pytest.fixture
def reader(tmp_path: Path) -> SessionReader:
    machine = Machine()
    with SessionWriter(tmp_path / "a.luns") as writer:
        for _ in range(10):
            writer.write(machine.sample())
    return SessionReader(tmp_path / "a.luns")


@pytest.mark.parametrize("tables", [("disks",), ("disks", "host")])
def test_every_row_and_figure_is_that_of_the_text_formats(
    reader: SessionReader, tmp_path: Path, tables: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "_GROUP_ROWS", 13)
    write_parquet(reader, tmp_path / "a.parquet", Selection(tables))
    written = read_table(tmp_path / "a.parquet")
    lines = list(csv.DictReader(export_lines(reader, "csv", Selection(tables))))
    assert written.column_names == list(lines[0])
    rows = written.drop_columns(["time"]).to_pylist()
    assert len(rows) == len(lines) > 13
    for row, line in zip(rows, lines, strict=True):
        for name, value in row.items():
            if isinstance(value, float):
                assert math.isclose(value, float(line[name]), abs_tol=1e-6), name
            else:
                assert ("" if value is None else str(value)) == line[name], name
    groups = ParquetFile(tmp_path / "a.parquet").metadata
    sizes = [groups.row_group(index).num_rows for index in range(groups.num_row_groups)]
    assert all(13 <= size < 13 + 7 for size in sizes[:-1])


def test_columns_say_their_unit_and_tier(reader: SessionReader, tmp_path: Path) -> None:
    write_parquet(reader, tmp_path / "a.parquet", Selection(fields=("await_ms", "busy_pct")))
    schema = read_table(tmp_path / "a.parquet").schema
    field = next(field for field in fields_of("disks") if field.id == "await_ms")
    about = schema.field("await_ms").metadata
    assert about[b"unit"] == b"ms"
    assert about[b"tier"].decode() == field.tier.name.lower()
    assert about[b"help"].decode() == field.help
    assert schema.metadata[b"schema"] == b"lunscope.parquet/1"
    assert str(schema.field("time").type) == "timestamp[ns, tz=UTC]"


def test_no_file_is_replaced_and_none_is_left_half_written(reader: SessionReader, tmp_path: Path) -> None:
    there = tmp_path / "there.parquet"
    there.write_text("mine")
    with pytest.raises(LunscopeError, match="exists already"):
        write_parquet(reader, there)
    assert there.read_text() == "mine"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, limits[1]))
    try:
        with pytest.raises(LunscopeError, match="cannot be written: File too large"):
            write_parquet(reader, tmp_path / "large.parquet")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".parquet"] == ["there.parquet"]


def test_what_has_other_columns_and_what_is_unknown_is_refused(reader: SessionReader, tmp_path: Path) -> None:
    for table in ("events", "slow_ios"):
        with pytest.raises(UsageError, match="exported as csv or jsonl"):
            write_parquet(reader, tmp_path / "a.parquet", Selection((table,)))
    with pytest.raises(UsageError, match="unknown; choose from"):
        write_parquet(reader, tmp_path / "a.parquet", Selection(("discs",)))


def test_without_pyarrow_the_fix_is_named(
    reader: SessionReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(LunscopeError, match=r"needs pyarrow: .*pip install '\.\[parquet\]'"):
        write_parquet(reader, tmp_path / "a.parquet")
    assert not (tmp_path / "a.parquet").exists()
