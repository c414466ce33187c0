"""Slow I/Os out of a recording: every column, missing values, names that are data."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from collectors.exact.collector import slow_table
from collectors.exact.tracer import SLOW_COLUMNS
from collectors.model import Device, Sample, Topology
from collectors.reports.export import Selection, export_lines
from collectors.reports.slow_tables import SLOW_IOS
from collectors.session.reader import SessionReader
from collectors.session.writer import SessionWriter
from engine.errors import UsageError
from tests.session_samples import MONOTONIC_NS, START_NS

DEVICE = Device("sda:8:0#1", "sda", "disk", 8, 0)


@pytest.fixture
def reader(tmp_path: Path) -> SessionReader:
    known = {"done_ns": MONOTONIC_NS - 1_000, "operation": 1, "sector": 77, "bytes": 4096, "queue_ns": 2_000_000}
    known |= {"service_ns": 500_000, "latency_ns": 2_500_000, "process": 42, "cgroup": 9}
    late = known | {"done_ns": MONOTONIC_NS - 500, "tag_wait_ns": 1_000_000, "row": 1, "latency_ns": 2_000_000}
    values = np.array([[one.get(name, 0) for name in SLOW_COLUMNS] for one in (known, late)], np.uint64)
    table = slow_table(values, ["=cmd\x1b", "dd"], np.array([[8, 0], [8, 99]], np.uint32))
    path = tmp_path / "s.luns"
    with SessionWriter(path) as writer:
        for tick, tables in enumerate(({"slow_io": table}, {})):
            times = START_NS + tick * 10**9, MONOTONIC_NS + tick * 10**9
            writer.write(Sample(*times, Topology({DEVICE.key: DEVICE}), tables))
    return SessionReader(path)


def test_jsonl_has_a_document_per_io(reader: SessionReader) -> None:
    first, second = map(json.loads, export_lines(reader, "jsonl", Selection(("slow_ios",))))
    assert first == {
        "schema": "lunscope.slow_ios/1",
        "time": first["time"],
        "time_ns": START_NS - 1_000,
        "name": "sda",
        "id": "sda:8:0#1",
        "operation": "write",
        "sector": 77,
        "size_bytes": 4096,
        "tag_wait_ms": None,
        "queue_ms": 2.0,
        "service_ms": 0.5,
        "latency_ms": 2.5,
        "pid": 42,
        "command": "=cmd\\x1b",
        "cgroup": 9,
    }
    assert (second["name"], second["id"], second["tag_wait_ms"], second["latency_ms"]) == ("8:99", "", 1.0, 3.5)


def test_csv_has_the_same_columns_and_no_formula(reader: SessionReader) -> None:
    lines = list(csv.reader(export_lines(reader, "csv", Selection(("slow_ios",)))))
    assert lines[0] == list(SLOW_IOS.columns)
    assert lines[1][lines[0].index("command")] == "'=cmd\\x1b"
    assert lines[1][lines[0].index("tag_wait_ms")] == ""


@pytest.mark.parametrize(
    ("selection", "words"),
    [
        (Selection(("slow_ios",), ("iops",)), "field 'iops': not in slow_ios"),
        (Selection(("disks", "slow_ios")), "export it by itself"),
    ],
)
def test_what_cannot_be_selected_is_a_usage_error(reader: SessionReader, selection: Selection, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        list(export_lines(reader, "csv", selection))
