"""Counters of paths on their way into a sample and a frame."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from collectors.model import Rows, Sample, Table, Topology
from collectors.rates import derive
from collectors.registry import fields_of
from collectors.tables.load.schema import LOAD_LOGICAL, LOAD_PATH
from engine.running.counter_reader import PATH_FAILED, LayoutCounters
from engine.running.status import StatusStore
from engine.running.supervisor import PathCounterWatch


def path_row(reads: int, peak_ns: int = 0, *, latency_ns: int = 0, failed: bool = False) -> list[int]:
    return [reads, reads * 4096, latency_ns, peak_ns, 0, 0, 0, 0, 2, 1, int(failed), 0]


class Engine:
    """Counts as told; peaks are taken by whoever asks, as the native engine does."""

    def __init__(self, rows: list[list[int]]) -> None:
        self.rows = rows
        self.logical = np.zeros(9, np.uint64)

    def path_counters(self) -> NDArray[np.uint64]:
        taken = np.array(self.rows, np.uint64).reshape(-1, 12)
        for row in self.rows:
            row[3] = row[7] = 0
        return taken

    def logical_counters(self) -> NDArray[np.uint64]:
        return self.logical


def test_only_paths_of_targets_with_several_are_shown_and_a_look_takes_no_peak() -> None:
    engine = Engine([path_row(10, 500), path_row(20), path_row(30)])
    tap = LayoutCounters(engine, ("load:1:0", "load:1:1"), ((), ("/dev/sda", "/dev/sdb")))  # type: ignore[arg-type]
    assert tap.names == ("", "/dev/sda", "/dev/sdb")
    engine.rows[1][3] = 700
    assert tap.peek()[1, 3] == 700
    engine.rows[1][3] = 300
    reading = tap.take()
    assert (reading.path_keys, reading.path_names) == (("load:1:1:0", "load:1:1:1"), ("/dev/sda", "/dev/sdb"))
    assert reading.paths[:, 0].tolist() == [20, 30]
    assert reading.paths[0, 3] == 700
    assert tap.take().paths[0, 3] == 0
    assert len(reading.logical) == 0


def test_a_load_without_paths_or_parts_has_no_rows() -> None:
    engine = Engine([])
    tap = LayoutCounters(engine, ("load:1:0",), ((),))  # type: ignore[arg-type]
    assert len(tap.take().paths) == 0
    engine.logical = np.array([5, 1, 1, 1, 0, 0, 0, 0, 0], np.uint64)
    assert tap.take().logical.shape == (1, 9)


def test_paths_that_fail_and_recover_are_events_once() -> None:
    board, watch, names = StatusStore(), PathCounterWatch(), ("/dev/sda", "/dev/sdb")
    for failed in ([0, 0], [0, 1], [0, 1], [1, 0]):
        counters = np.zeros((2, 12), np.uint64)
        counters[:, PATH_FAILED] = failed
        watch.observe(counters, names, board)
    texts = [event.text for event in board.take_events()]
    assert texts == [
        "path /dev/sdb failed: its I/Os go over the others until it answers",
        "path /dev/sda failed: its I/Os go over the others until it answers",
        "path /dev/sdb answers again",
    ]


def test_figures_of_paths_and_logical_ios() -> None:
    rows = Rows(("a", "b"), ("/dev/sda", "/dev/sdb"))
    before = Table(LOAD_PATH, rows, np.array([path_row(100), path_row(100)], np.uint64))
    after = Table(
        LOAD_PATH,
        rows,
        np.array([path_row(300, 4_000_000, latency_ns=200_000_000), path_row(100, failed=True)], np.uint64),
    )
    one = Rows(("load",), ("whole I/Os",))
    logical_before = Table(LOAD_LOGICAL, one, before.values[:1, :9])
    logical_after = Table(LOAD_LOGICAL, one, after.values[:1, :9])
    frame = derive(
        Sample(0, 0, Topology(), {"load_path": before, "load_logical": logical_before}),
        Sample(0, 2_000_000_000, Topology(), {"load_path": after, "load_logical": logical_after}),
    )
    table, logical = frame.tables["load_paths"], frame.tables["load_logical"]
    assert set(table.columns) == {field.id for field in fields_of("load_paths")}
    assert table.value("iops", 0) == 100
    assert table.value("await_ms", 0) == pytest.approx(1.0)
    assert table.value("max_ms", 0) == 4.0
    assert np.isnan(table.value("await_ms", 1))
    assert (table.value("failed", 0), table.value("failed", 1)) == (0, 1)
    assert set(logical.columns) == {field.id for field in fields_of("load_logical")}
    assert logical.value("iops", 0) == 100
