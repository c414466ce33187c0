"""I/O by process: names and bounds of its tables, its figures, sums over paths and intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from collectors.derive.downsample import downsample
from collectors.exact.processes import ProcessTables, added
from collectors.exact.tracer import PROCESS_COLUMNS, ProcessIos
from collectors.graph import Graph, Lun
from collectors.graph import Path as LunPath
from collectors.model import MISSING, FrameTable, Histograms, Rows, Sample, Step, Table, Tier
from collectors.rates import derive
from collectors.reports.report import ReportOptions, report_json, report_text, with_tier
from collectors.session.reader import SessionReader
from collectors.session.writer import SessionWriter
from collectors.tables.process_io.schema import (
    MOST_ROWS,
    PROCESS_IO,
    PROCESS_SCALE,
    PROCESS_SERIES,
    Submitter,
    parts_of,
    process_key,
    row_key,
    submitter_name,
    workqueue_key,
)
from engine.replacing import replace
from tests.unit.hand_tracer import HandTracer
from tests.unit.traced_samples import traced_sample

DISKS = Rows(("sda:8:0#1", "sdb:8:16#2"), ("sda", "sdb"))
SDA, SDB = DISKS.keys
Row = Mapping[str, int]


def position(rows: np.ndarray[tuple[int], np.dtype[np.uint32]]) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Place the tracer's rows 0 and 1; a third is of a device that is gone."""
    return np.array([0, 1, -1], np.intp)[rows]


def tables(tracer: HandTracer, made: ProcessTables, unknown: int = 0) -> tuple[dict[str, Table], Histograms]:
    return made.read(tracer.processes(), position, DISKS, unknown)


def stat(procfs: Path, pid: int, command: str, started: int) -> None:
    (procfs / str(pid)).mkdir()
    fields = " ".join(["S", *["0"] * 18, str(started), *["0"] * 20])
    (procfs / str(pid) / "stat").write_text(f"{pid} ({command}) {fields}\n")


def test_names_say_what_kind_of_thing_submitted() -> None:
    assert submitter_name(Submitter.PROCESS, 7, "dd") == "dd[7]"
    assert submitter_name(Submitter.KERNEL, 77, "jbd2/sda1-8") == "[jbd2/sda1-8]"
    assert submitter_name(Submitter.WORKQUEUE, 0, "writeback") == "writeback (kworker)"
    assert parts_of(row_key(SDA, workqueue_key("a b"))) == (SDA, "workqueue a b")


def test_keys_are_those_of_the_table_of_processes_and_names_are_current(tmp_path: Path) -> None:
    stat(tmp_path, 4711, "dd", 1234)
    stat(tmp_path, 4712, "another", 99)
    tracer, made = HandTracer(), ProcessTables(str(tmp_path))
    tracer.process(0, "sh", process=4711, started_ns=12_345_678_901, reads=3, latency_ns=9)
    tracer.process(0, "gone", process=4712, started_ns=5_000_000_000, reads=2, latency_ns=8)
    tracer.process(1, "writeback", kind=3, writes=2, latency_ns=7)
    found, _ = tables(tracer, made)
    table = found["process_io"]
    assert table.rows.keys == (
        row_key(SDA, process_key(4711, 1234)),
        row_key(SDA, process_key(4712, 500)),
        row_key(SDB, workqueue_key("writeback")),
    )
    # The second is not the process that has its number now: its name is that of its first I/O.
    assert table.rows.names == ("dd[4711]", "gone[4712]", "writeback (kworker)")
    assert table.column("pid").tolist() == [4711, 4712, int(MISSING)]


def test_rows_stay_one_object_and_cells_follow_them(tmp_path: Path) -> None:
    tracer, made = HandTracer(), ProcessTables(str(tmp_path))
    seen = []
    for order in ((1, 0), (0, 1)):
        for row in order:
            tracer.process(row, f"on {row}", {20 + row: 5}, process=10 + row, reads=5, latency_ns=100)
        found, cells = tables(tracer, made)
        seen.append(found["process_io"].rows)
        buckets = dict(zip(cells.row.tolist(), cells.bucket.tolist(), strict=True))
        assert buckets == {0: 20, 1: 21}
        assert cells.series == PROCESS_SERIES
    assert seen[0] is seen[1]


def test_only_the_busiest_are_kept_but_one_of_every_device_and_the_rest_is_counted(tmp_path: Path) -> None:
    tracer, made = HandTracer(), ProcessTables(str(tmp_path))
    for number in range(MOST_ROWS + 9):
        tracer.process(0, "many", process=number + 1, reads=2, writes=1, latency_ns=1_000 + number)
    tracer.process(1, "one", process=9_999, reads=1, latency_ns=1)
    tracer.process(2, "of a device that is gone", process=9_998, reads=100, latency_ns=1)
    found, _ = tables(tracer, made, unknown=5)
    table, left = found["process_io"], found["process_left"]
    assert len(table.rows) == MOST_ROWS
    assert row_key(SDB, process_key(9_999, None)) in table.rows.keys
    assert row_key(SDA, process_key(10, None)) not in table.rows.keys
    assert row_key(SDA, process_key(11, None)) in table.rows.keys
    assert left.values.tolist() == [[11, 10 * 3 + 100, 5]]


def test_readings_add_up_by_process_and_device() -> None:
    tracer = HandTracer()
    tracer.process(0, "dd", {5: 2}, process=7, reads=2, latency_ns=10)
    tracer.process(0, "writeback", {6: 1}, kind=3, writes=1, latency_ns=5)
    first = tracer.processes()
    tracer.process(0, "loop0", {6: 4}, kind=3, writes=4, latency_ns=5)
    tracer.process(0, "dd", {5: 1, 9: 2}, process=7, reads=3, latency_ns=30)
    rows, cells = added([first, tracer.processes()])
    by_name = {bytes_of(row): (position_, sums_of(row)) for position_, row in enumerate(rows)}
    assert {name: sums for name, (_, sums) in by_name.items()} == {
        "dd": (5, 0, 40),
        "writeback": (0, 1, 5),
        "loop0": (0, 4, 5),
    }
    of_dd = {bucket: count for at, bucket, count in cells.tolist() if at == by_name["dd"][0]}
    assert of_dd == {5: 3, 9: 2}
    empty: ProcessIos = (rows[:0], cells[:0])
    assert len(added([empty, (rows, cells)])[0]) == 3


def bytes_of(row: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> str:
    return row[-4:].astype("<u8").tobytes().split(b"\0")[0].decode()


def sums_of(row: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> tuple[int, ...]:
    return tuple(int(row[PROCESS_COLUMNS.index(name)]) for name in ("reads", "writes", "latency_ns"))


def sample(
    at_s: int, who: Rows, rows: Mapping[str, Row], cells: Sequence[tuple[int, int, int]] = (), *, started_ns: int = 1
) -> Sample:
    """A sample with exact time whose rows of processes are given by key; cells as row, bucket, count."""
    counted = {"reads": 1000 * at_s, "service_read_ns": 10**9 * at_s}
    made = traced_sample(at_s, who, *([counted] * len(who)), started_ns=started_ns)
    names = Rows(tuple(rows), tuple(f"name of {key}" for key in rows))
    values = np.zeros((len(rows), len(PROCESS_IO.columns)), np.uint64)
    for row, given in enumerate(rows.values()):
        for name, value in given.items():
            values[row, PROCESS_IO.index(name)] = value
    row_, bucket, count = np.array(cells, np.int64).reshape(-1, 3).T
    histograms = Histograms(
        PROCESS_SCALE,
        names,
        PROCESS_SERIES,
        row_.astype(np.uint32),
        np.zeros(len(row_), np.uint8),
        bucket.astype(np.uint16),
        count.astype(np.uint64),
    )
    table = Table(PROCESS_IO, names, values)
    return replace(
        made,
        tables={**made.tables, PROCESS_IO.name: table},
        histograms={**made.histograms, PROCESS_IO.name: histograms},
    )


DD, CP = row_key(SDA, "7:1"), row_key(SDB, "8:1")
BUSY = {"pid": 7, "kind": 1, "cgroup": 3, "reads": 200, "read_bytes": 819_200, "latency_ns": 400_000_000}
FEW = {"pid": 8, "kind": 1, "writes": 50, "write_bytes": 51_200, "latency_ns": 100_000_000}
CELLS = ((0, 30, 150), (0, 44, 50))


def frames_of(*samples: Sample) -> FrameTable:
    return derive(*samples).tables["process_ios"]


def test_figures_of_an_interval() -> None:
    found = frames_of(sample(1, DISKS, {}), sample(3, DISKS, {DD: BUSY, CP: FEW}, CELLS))
    row = found.rows.positions[DD]
    figures = {name: float(column[row]) for name, column in found.columns.items()}
    assert figures["iops"] == pytest.approx(100)
    assert figures["read_bytes_per_s"] == pytest.approx(409_600)
    assert figures["await_ms"] == pytest.approx(2.0)
    assert figures["in_flight"] == pytest.approx(0.2)
    # Of the 2 s that the I/Os of the device took together in the interval.
    assert figures["share_pct"] == pytest.approx(20.0)
    # Bucket 44 = octave 10 and 4 of 4 to 7: 4096 to 5119 units of 1024 ns.
    assert figures["p99_ms"] == pytest.approx(4607.5 * 1.024e-3, rel=1e-3)
    assert figures["pid"] == 7
    few = found.rows.positions[CP]
    assert np.isnan(found.columns["p99_ms"][few])
    assert found.columns["writes_per_s"][few] == pytest.approx(25)


def test_nothing_is_known_before_a_whole_interval_was_traced() -> None:
    untraced = replace(sample(1, DISKS, {}), tables={}, histograms={})
    restarted = sample(3, DISKS, {DD: BUSY}, CELLS, started_ns=2)
    for previous, current in ((untraced, sample(3, DISKS, {DD: BUSY}, CELLS)), (sample(1, DISKS, {}), restarted)):
        found = frames_of(previous, current)
        for name in ("iops", "await_ms", "p99_ms", "share_pct"):
            assert np.isnan(found.columns[name]).all(), name


def test_the_head_of_nvme_paths_is_their_sum_and_a_map_of_dm_is_not_added_again() -> None:
    paths = tuple(LunPath(key, key.partition(":")[0], lun) for key, lun in ((SDA, "head"), (SDB, "head")))
    graph = Graph(luns=(Lun("head", "nvme0n1", multipath="nvme"),), paths=paths)
    rows = {row_key(SDA, "7:1"): BUSY, row_key(SDB, "7:1"): BUSY, row_key(SDB, "9:1"): FEW}
    samples = [sample(1, DISKS, {}), sample(2, DISKS, rows, (*CELLS, (1, 44, 200)))]
    for multipath, expected in (("nvme", {"head 7:1", "head 9:1"}), ("dm", set())):
        luns = (replace(graph.luns[0], multipath=multipath),)
        with_graph = [replace(one, topology=replace(one.topology, graph=replace(graph, luns=luns))) for one in samples]
        found = frames_of(*with_graph)
        assert set(found.rows.keys) - set(rows) == expected
    found = frames_of(*(replace(one, topology=replace(one.topology, graph=graph)) for one in samples))
    head, path = found.rows.positions["head 7:1"], found.rows.positions[DD]
    assert found.columns["iops"][head] == pytest.approx(400)
    assert found.columns["await_ms"][head] == pytest.approx(2.0)
    assert found.columns["share_pct"][head] == pytest.approx(40.0)
    assert found.columns["share_pct"][path] == pytest.approx(40.0)
    assert found.columns["pid"][head] == 7
    assert np.isfinite(found.columns["p99_ms"][head])


def test_longer_intervals_keep_processes_that_are_gone() -> None:
    first, second = sample(1, DISKS, {DD: BUSY}, CELLS), sample(2, DISKS, {CP: FEW, DD: BUSY}, ((1, 30, 200),))
    third = sample(3, DISKS, {CP: FEW})
    start = sample(0, DISKS, {})
    steps = [Step(None, start), Step(start, first), Step(first, second), Step(second, third)]
    _, whole = downsample(steps, 3.0)
    assert whole.previous is not None
    found = frames_of(whole.previous, whole.current)
    assert found.columns["iops"][found.rows.positions[DD]] == pytest.approx(400 / 3)
    assert found.columns["iops"][found.rows.positions[CP]] == pytest.approx(100 / 3)
    assert np.isfinite(found.columns["p99_ms"][found.rows.positions[DD]])


def run() -> list[Step]:
    samples = [sample(0, DISKS, {}), sample(1, DISKS, {DD: BUSY}, CELLS), sample(2, DISKS, {DD: BUSY, CP: FEW}, CELLS)]
    return [Step(previous, current) for previous, current in zip((None, *samples), samples, strict=False)]


def test_the_report_names_process_and_device_and_averages_over_all_of_its_time() -> None:
    lines = list(report_text(run(), ReportOptions(("process_ios",))))
    words = [line.split() for line in lines]
    row = next(line for line in words if line[-7:-5] == ["7:1", "sda"])
    assert row[-5:] == ["200.0", "800.0", "2.000", "4.719", "40.0"]
    averages = [line for line in words if line and line[0] == "Average:"]
    assert next(line for line in averages if "8:1" in line)[-5:] == ["25.0", "25.0", "2.000", "-", "5.0"]
    assert next(line for line in averages if "7:1" in line)[-5:] == ["200.0", "800.0", "2.000", "4.719", "40.0"]
    assert max(map(len, lines)) <= 80


def test_json_has_them_where_they_are_asked_for_and_no_lesser_tier() -> None:
    asked, unasked = (list(report_json(run(), ReportOptions(tables)))[-1] for tables in (("process_ios",), ()))
    assert '"device":"sda","process":"7:1"' in asked
    assert '"process_ios":[]' in unasked
    lesser = list(with_tier(run(), Tier.SAMPLED))[-1].current
    assert PROCESS_IO.name not in lesser.tables
    assert PROCESS_IO.name not in lesser.histograms


def test_a_session_keeps_them(tmp_path: Path) -> None:
    path = tmp_path / "who.luns"
    with SessionWriter(path) as writer:
        for step in run():
            writer.write(step.current)
    reader = SessionReader(path)
    first, last = list(reader.steps(reader.first, len(reader) - 1))[-2:]
    assert last.previous is not None
    found, expected = frames_of(last.previous, last.current), frames_of(run()[2].previous, run()[2].current)  # type: ignore[arg-type]
    assert found.rows.keys == expected.rows.keys
    for name, column in expected.columns.items():
        np.testing.assert_array_equal(found.columns[name], column)
    assert first.current.tables[PROCESS_IO.name].rows.names == (f"name of {DD}",)
