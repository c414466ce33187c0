"""Tape drives: read, derived, reported, recorded."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from threading import Event as StopFlag

import numpy as np
import pytest

from collectors.model import Step
from collectors.rates import derive
from collectors.reports.report import ReportOptions, report_json, report_text
from collectors.reports.scan_tree import tree_lines
from collectors.session.reader import SessionReader
from collectors.session.writer import SessionWriter
from collectors.sources.live import LiveSource
from collectors.tables.tape.reader import TapeCollector
from collectors.tables.tape.schema import TAPE
from collectors.topology.scanner import read_topology
from tests.fake_kernel import FakeKernel
from tests.fake_storage import FakeScsi, add_tape
from tests.unit.raw_samples import raw_table, rows, sample

WHO = rows("st0", "st1")


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    kernel = FakeKernel(tmp_path)
    FakeScsi(kernel, hosts=1, luns=1, maps=False).build()
    return kernel


def steps(*moments: tuple[dict[str, int], dict[str, int]]) -> list[Step]:
    samples = [sample(at, tapes=raw_table(TAPE, WHO, values)) for at, values in enumerate(moments, start=1)]
    return [Step(before, now) for before, now in zip([None, *samples], samples, strict=False)]


def wrote(blocks: int, each_ms: int, **more: int) -> dict[str, int]:
    spent = blocks * each_ms * 1_000_000
    return {"writes": blocks, "write_bytes": blocks * 65536, "write_ns": spent, "io_ns": spent, **more}


def test_a_drive_is_one_row_whatever_its_modes(kernel: FakeKernel) -> None:
    add_tape(kernel, 10)
    add_tape(kernel, 2, read_cnt=5, read_byte_cnt=320, read_ns=7, io_ns=9, in_flight=1)
    table = TapeCollector(str(kernel.sysfs)).read().tables["tape"]
    assert table.rows.names == ("st2", "st10")
    assert [int(table.column(name)[0]) for name in ("reads", "read_bytes", "read_ns", "io_ns", "in_flight_now")] == [
        5, 320, 7, 9, 1,
    ]  # fmt: skip


def test_rows_stay_until_a_drive_comes_or_goes(kernel: FakeKernel) -> None:
    add_tape(kernel, 0)
    collector = TapeCollector(str(kernel.sysfs))
    first = collector.read().tables["tape"].rows
    assert collector.read().tables["tape"].rows is first
    add_tape(kernel, 1)
    assert collector.read().tables["tape"].rows.names == ("st0", "st1")
    shutil.rmtree(kernel.sysfs / "class/scsi_tape")
    assert len(collector.read().tables["tape"].rows) == 0


def test_a_second_of_writing() -> None:
    _, step = steps(({}, {}), (wrote(100, 8, others=1), {}))
    tapes = derive(step.previous, step.current).tables["tapes"]
    assert tapes.value("writes_per_s", 0) == 100
    assert tapes.value("bytes_per_s", 0) == 100 * 65536
    assert tapes.value("write_await_ms", 0) == pytest.approx(8)
    assert tapes.value("busy_pct", 0) == pytest.approx(80)
    assert tapes.value("others_per_s", 0) == 1
    assert np.isnan(tapes.value("read_await_ms", 0))
    assert (tapes.value("iops", 1), tapes.value("busy_pct", 1)) == (0, 0)


def test_a_rewind_of_three_seconds_is_busy_while_it_runs_and_never_more_than_that() -> None:
    running = {"in_flight_now": 1}
    moments = steps(({}, {}), (running, {}), (running, {}), ({"others": 1, "io_ns": 3_000_000_000}, {}), (
        {"others": 1, "io_ns": 3_000_000_000}, {}))  # fmt: skip
    busy = [derive(step.previous, step.current).tables["tapes"].value("busy_pct", 0) for step in moments]
    assert busy[1:] == [0, 100, 100, 0]
    assert np.isnan(busy[0])


def test_counters_that_began_anew_give_no_figures() -> None:
    _, step = steps((wrote(100, 1), {}), (wrote(1, 1), {}))
    tapes = derive(step.previous, step.current).tables["tapes"]
    assert np.isnan(tapes.value("writes_per_s", 0))
    assert np.isnan(tapes.value("busy_pct", 0))


def test_the_report_shows_drives_and_their_averages() -> None:
    moments = steps(({}, {}), (wrote(100, 8), {}), (wrote(100, 8), {"in_flight_now": 1}))
    lines = list(report_text(moments, ReportOptions(("tapes",))))
    drive = [line.split() for line in lines if " st0 " in line]
    assert drive[0][2:5] == ["100.0", "6400.0", "8.000"]
    assert drive[-1][:3] == ["Average:", "st0", "50.0"]
    assert drive[-1][-1] == "40.0"
    assert not any(
        "st1" in line for line in lines[: lines.index(next(line for line in lines if "Average" in line))][:6]
    )
    document = json.loads(next(iter(report_json(moments, ReportOptions(("tapes",))))))
    assert [(tape["name"], tape["writes_per_s"]) for tape in document["tapes"]] == [("st0", 100), ("st1", 0)]
    assert document["disks"] == []


def test_the_graph_names_drives_and_their_ports(kernel: FakeKernel) -> None:
    add_tape(kernel, 0)
    topology = read_topology(kernel.procfs, kernel.sysfs)
    (tape,) = topology.graph.tapes
    assert (tape.name, tape.address, tape.state, tape.model) == ("st0", "0:0:9:0", "running", "ULT3580-TD8")
    assert tape.port == topology.graph.paths[0].port
    assert "tape st0  IBM ULT3580-TD8  naa.5000000000000000  0:0:9:0  host0 -> target0:0:9  running" in list(
        tree_lines(topology)
    )


def test_drives_are_recorded_with_their_facts(kernel: FakeKernel, tmp_path: Path) -> None:
    add_tape(kernel, 0, write_cnt=3)
    source = LiveSource(1.0, kernel.procfs, kernel.sysfs, "kernel", first_topology_s=30)
    try:
        current = next(iter(source.steps(StopFlag()))).current
    finally:
        source.close()
    with SessionWriter(tmp_path / "a.luns") as writer:
        writer.write(current)
    with SessionReader(tmp_path / "a.luns") as reader:
        read = reader.sample_at(0)
    assert read is not None
    assert read.topology.graph.tapes == current.topology.graph.tapes
    assert read.tables["tape"].rows.keys == current.tables["tape"].rows.keys == (read.topology.graph.tapes[0].key,)
    assert int(read.tables["tape"].column("writes")[0]) == 3
