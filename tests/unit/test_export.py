"""Exports: every row, strict formats, names that try to be something else."""

from __future__ import annotations

import contextlib
import csv
import json
import math
import sqlite3
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from collectors.model import Device, Rows, Sample, Table, Topology
from collectors.rates import derive
from collectors.registry import fields_of
from collectors.reports.export import Selection, export_lines
from collectors.session.reader import SessionReader
from collectors.session.writer import SessionWriter
from collectors.tables.block.schema import DISK
from engine.errors import UsageError
from tests.session_samples import START_NS, Machine

NASTY = ["=cmd|'/C calc'!A0", "+1", "-1", "@x", 'quo"te,comma', "new\nline\r", "\x1b[31mred", "\u202eevil", "plain"]


def _record(path: Path, samples: list[Sample]) -> SessionReader:
    with SessionWriter(path) as writer:
        for sample in samples:
            writer.write(sample)
    return SessionReader(path)


@pytest.fixture
def recording(tmp_path: Path) -> tuple[SessionReader, list[Sample]]:
    machine = Machine()
    samples = [machine.sample() for _ in range(10)]
    return _record(tmp_path / "a.lun", samples), samples


def _csv(lines: list[str]) -> list[dict[str, str]]:
    return list(csv.DictReader(lines))


def test_csv_has_every_figure_of_every_disk_and_sample(recording: tuple[SessionReader, list[Sample]]) -> None:
    reader, samples = recording
    rows = _csv(list(export_lines(reader, "csv")))
    assert len(rows) == 10 * 6
    ids = [field.id for field in fields_of("disks")]
    assert list(rows[0]) == ["time", "time_ns", "interval_s", "table", "name", "id", *ids, "tiers"]
    frames = [derive(None, samples[0]), *(derive(before, after) for before, after in pairwise(samples))]
    for position, row in enumerate(rows):
        frame, disk = frames[position // 6], position % 6
        assert int(row["time_ns"]) == frame.time_ns
        assert (row["table"], row["name"]) == ("disks", f"sd{disk}")
        for id_ in ids:
            value = frame.tables["disks"].value(id_, disk)
            if math.isnan(value):
                assert row[id_] == ""
            else:
                assert float(row[id_]) == pytest.approx(value, abs=1e-6)


def test_jsonl_is_strict_and_says_the_same(recording: tuple[SessionReader, list[Sample]]) -> None:
    reader, _ = recording
    tables = ("disks", "host", "load")
    selection = Selection(tables)
    documents = [
        json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
        for line in export_lines(reader, "jsonl", selection)
    ]
    assert {document["table"] for document in documents} == set(tables)
    assert all(next(iter(document)) == "schema" for document in documents)
    rows = _csv(list(export_lines(reader, "csv", selection)))
    assert len(rows) == len(documents)
    for row, document in zip(rows, documents, strict=True):
        for name in ("iops", "cpu_idle_pct", "queue_depth", "interval_s"):
            if row[name]:
                assert float(row[name]) == pytest.approx(document[name])
            else:
                assert document[name] is None


def test_times_and_fields_select(recording: tuple[SessionReader, list[Sample]]) -> None:
    reader, samples = recording
    chosen = Selection(("disks",), ("iops", "busy_pct", "iops"))
    lines = list(export_lines(reader, "csv", chosen, samples[3].time_ns, samples[5].time_ns))
    assert lines[0].split(",")[6:] == ["iops", "busy_pct", "tiers"]
    rows = _csv(lines)
    assert sorted({int(row["time_ns"]) for row in rows}) == [sample.time_ns for sample in samples[3:6]]
    assert all(row["interval_s"] for row in rows)
    whole = _csv(list(export_lines(reader, "csv", chosen)))
    assert rows == whole[18:36]
    later = _csv(list(export_lines(reader, "csv", chosen, samples[3].time_ns + 1)))
    assert int(later[0]["time_ns"]) == samples[4].time_ns
    early = _csv(list(export_lines(reader, "csv", chosen, 0, samples[0].time_ns)))
    assert {row["time_ns"] for row in early} == {str(samples[0].time_ns)}


def test_wishes_that_cannot_be_met_are_named(recording: tuple[SessionReader, list[Sample]]) -> None:
    reader, _ = recording
    for arguments, reason in (
        (("xml",), "format 'xml'"),
        (("csv", Selection(("discs",))), "table 'discs': unknown; choose from disks"),
        (("csv", Selection(("disks",), ("iopz",))), "field 'iopz'"),
        (("csv", None, START_NS + 10**12), "nothing recorded in that time"),
        (("csv", None, None, START_NS - 10**12), "nothing recorded in that time"),
        (("csv", None, START_NS + 5 * 10**9, START_NS + 3 * 10**9), "nothing recorded in that time"),
    ):
        with pytest.raises(UsageError, match=reason):
            export_lines(reader, *arguments)


@pytest.fixture
def nasty(tmp_path: Path) -> SessionReader:
    rows = Rows(tuple(f"key{name}" for name in NASTY), tuple(NASTY))
    devices = {
        key: Device(key, name, "disk", 8, 0, persistent_id=name)
        for key, name in zip(rows.keys, rows.names, strict=True)
    }
    values = np.ones((len(NASTY), len(DISK.columns)), np.uint64)
    samples = [
        Sample(START_NS + i, 10**9 * i, Topology(devices), {"disk": Table(DISK, rows, values * np.uint64(i))})
        for i in range(2)
    ]
    return _record(tmp_path / "nasty.lun", samples)


def test_names_are_data_whatever_they_say(nasty: SessionReader) -> None:
    lines = list(export_lines(nasty, "csv"))
    assert len(lines) == 1 + 2 * len(NASTY)
    assert all(line.isprintable() for line in lines)
    for row in _csv(lines):
        for column in ("name", "id"):
            assert not row[column].startswith(("=", "+", "-", "@", "\t", "\r"))
    names = [row["name"] for row in _csv(lines)][: len(NASTY)]
    assert names[:5] == ["'=cmd|'/C calc'!A0", "'+1", "'-1", "'@x", 'quo"te,comma']
    assert names[6] == r"\x1b[31mred"
    documents = [json.loads(line) for line in export_lines(nasty, "jsonl")]
    assert documents[0]["name"] == NASTY[0]
    assert documents[6]["name"] == r"\x1b[31mred"


def test_an_export_holds_one_sample_at_a_time(tmp_path: Path) -> None:
    machine = Machine()
    reader = _record(tmp_path / "a.lun", [machine.sample() for _ in range(50)])
    lines = export_lines(reader, "csv")
    assert next(lines).startswith("time,")
    next(lines)
    assert len(reader._kept) <= 4


def test_damaged_samples_are_left_out_and_reported(recording: tuple[SessionReader, list[Sample]]) -> None:
    path, samples = recording[0].path, recording[1]
    recording[0].close()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM ticks WHERE tick = 7")
        connection.commit()
    with SessionReader(path) as reader:
        rows = _csv(list(export_lines(reader, "csv")))
        assert sorted({int(row["time_ns"]) for row in rows}) == [sample.time_ns for sample in samples[:7]]
        assert "3 ticks unreadable" in reader.notice
