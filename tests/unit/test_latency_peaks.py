"""The largest peaks of an interval, and whose they are."""

from __future__ import annotations

import numpy as np

from collectors.latency.summary import PER_TICK, largest, peaks_of
from collectors.latency.ticks import LatencyTick, row_peaks
from collectors.model import MISSING, Rows, Table
from collectors.tables.block.schema import TRACE
from collectors.tables.load.schema import LOAD
from tests.unit.latency_ticks import START_NS, histograms, tick


def test_each_row_is_named_once_by_its_largest() -> None:
    made = tick(0, [(0, 0, 5_000), (0, 1, 9_000), (1, 0, 7_000)])
    assert [(peak.name, peak.what, peak.latency_ns) for peak in peaks_of(made, "load")] == [
        ("vda", "write", 9_000),
        ("vdb", "read", 7_000),
    ]


def test_no_more_are_kept_of_a_moment_than_are_worth_reading() -> None:
    rows = Rows(tuple("abcdefgh"), tuple("abcdefgh"))
    made = tick(0, [(row, 0, 1_000 + row) for row in range(8)], rows=rows)
    found = list(peaks_of(made, "load"))
    assert [peak.name for peak in found] == ["h", "g", "f"]
    assert len(found) == PER_TICK
    later = list(peaks_of(tick(1, [(0, 0, 99_000)]), "load"))
    assert [peak.latency_ns for peak in largest([*found, *later], 2)] == [99_000, 1_007]


def test_the_kernels_peak_is_that_of_whole_ios() -> None:
    rows = Rows(("a", "b"), ("sda", "sdb"))
    raw = np.zeros((2, len(TRACE.columns)), np.uint64)
    for column, value in {"queue_max_ns": 900, "service_max_ns": 800, "latency_max_ns": 1_000}.items():
        raw[0, TRACE.index(column)] = value
    raw[1] = MISSING
    peaks = row_peaks("trace", Table(TRACE, rows, raw))
    assert peaks.row.tolist() == [0]
    made = LatencyTick(START_NS, 10**9, histograms([]), peaks)
    (peak,) = peaks_of(made, "trace")
    assert (peak.name, peak.what, peak.latency_ns) == ("sda", "total", 1_000)


def test_where_queue_times_are_unknown_the_peak_is_that_of_service() -> None:
    raw = np.zeros((1, len(TRACE.columns)), np.uint64)
    for column, value in {"service_max_ns": 800, "latency_max_ns": 800, "unstamped": 5}.items():
        raw[0, TRACE.index(column)] = value
    peaks = row_peaks("trace", Table(TRACE, Rows(("a",), ("sda",)), raw))
    (peak,) = peaks_of(LatencyTick(START_NS, 10**9, histograms([]), peaks), "trace")
    assert (peak.what, peak.latency_ns) == ("service", 800)


def test_a_source_without_peaks_has_none() -> None:
    nothing = row_peaks("load", None)
    assert len(nothing.row) == 0
    assert list(peaks_of(LatencyTick(START_NS, 10**9, histograms([]), nothing), "load")) == []
    empty = row_peaks("load", Table(LOAD, Rows((), ()), np.zeros((0, len(LOAD.columns)), np.uint64)))
    assert len(empty.row) == 0
