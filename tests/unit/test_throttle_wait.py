"""Waits for limits of control groups: added to the rows of the table, derived, averaged; missing with a reason."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from collectors.kernel.identity import device_key
from collectors.model import Histograms, Rows, Step, Table
from collectors.reports.report import ReportOptions, report_json, report_text
from collectors.sampling.programs import ThrottleProgram, Waits
from collectors.sampling.reading import Reading
from collectors.tables.block.schema import DISK
from collectors.tables.cgroup.reader import CgroupCollector
from collectors.tables.cgroup.schema import CGROUP
from collectors.tables.cgroup.throttle import ThrottleWaits
from collectors.tables.cgroup.tree import find_hierarchy
from engine.replacing import replace
from tests.fake_cgroups import FakeCgroups
from tests.unit.raw_samples import RAW_MISSING, sample

SDA = "8:0"
PATIENCE_S = 60.0
_ROWS = Rows((device_key("sda", 8, 0, 1),), ("sda",))
_DISKS = Table(DISK, _ROWS, np.zeros((1, len(DISK.columns)), np.uint64))
Open = Callable[[Callable[[], ThrottleProgram]], CgroupCollector]


class HandProgram:
    """Waits as a test sets them."""

    def __init__(self) -> None:
        self.rows: list[list[int]] = []
        self.cells: list[list[int]] = []
        self.closed = False

    def read(self) -> Waits:
        rows = np.array(self.rows, np.uint64).reshape(-1, 5)
        return rows, np.array(self.cells, np.uint64).reshape(-1, 3)

    def losses(self) -> tuple[int, int]:
        return 0, 0

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def groups(tmp_path: Path) -> FakeCgroups:
    groups = FakeCgroups(tmp_path / "sys")
    for path in ("/", "/a.slice", "/a.slice/one.service", "/b.slice"):
        limits = "8:0 rbps=max wbps=max riops=100 wiops=max\n" if path == "/a.slice" else ""
        groups.put(path, {SDA: (4096, 0, 1, 0)}, limits=limits)
    return groups


@pytest.fixture
def collector_of(tmp_path: Path, groups: FakeCgroups) -> Iterator[Open]:
    opened: list[CgroupCollector] = []

    def open_(program: Callable[[], ThrottleProgram]) -> CgroupCollector:
        hierarchy = find_hierarchy(str(groups.root.parents[1]))
        assert hierarchy is not None
        waits = ThrottleWaits(program, adds_up=hierarchy.adds_up)
        opened.append(CgroupCollector(hierarchy, lambda: _DISKS, waits))
        return opened[-1]

    yield open_
    for collector in opened:
        collector.close()


def until(collector: CgroupCollector, wanted: Callable[[Reading], bool]) -> Reading:
    deadline_s = time.monotonic() + PATIENCE_S
    while not wanted(reading := collector.read()) and time.monotonic() < deadline_s:
        time.sleep(0.01)
    return reading


def attached(reading: Reading) -> bool:
    return CGROUP.name in reading.histograms


def waits_of(reading: Reading) -> dict[str, tuple[int, int]]:
    table = reading.tables[CGROUP.name]
    columns = [table.column(name).tolist() for name in ("throttle_ios", "throttle_wait_ns")]
    return dict(zip(table.rows.names, zip(*columns, strict=True), strict=True))


def number(groups: FakeCgroups, path: str) -> int:
    return (groups.root / path.lstrip("/")).stat().st_ino


def test_a_wait_counts_for_its_group_and_those_above(collector_of: Open, groups: FakeCgroups) -> None:
    program = HandProgram()
    collector = collector_of(lambda: program)
    assert waits_of(until(collector, attached)) == dict.fromkeys(waits_of(collector.read()), (0, 0))
    one, slice_ = number(groups, "/a.slice/one.service"), number(groups, "/a.slice")
    program.rows = [[one, 8, 0, 150, 9_000_000], [slice_, 8, 0, 2, 1_000], [4, 8, 0, 7, 7], [one, 8, 16, 7, 7]]
    program.cells = [[0, 60, 149], [0, 61, 1], [1, 3, 2], [2, 1, 7]]
    reading = collector.read()
    assert waits_of(reading) == {
        "/ sda": (152, 9_001_000),
        "/a.slice sda": (152, 9_001_000),
        "/a.slice/one.service sda": (150, 9_000_000),
        "/b.slice sda": (0, 0),
    }
    found = reading.histograms[CGROUP.name]
    cells = sorted(zip(found.row.tolist(), found.bucket.tolist(), found.count.tolist(), strict=True))
    assert cells == [
        *((0, 3, 2), (0, 60, 149), (0, 61, 1)),
        *((1, 3, 2), (1, 60, 149), (1, 61, 1)),
        *((2, 60, 149), (2, 61, 1)),
    ]
    collector.close()
    assert program.closed


def test_without_a_limit_nothing_is_attached(collector_of: Open, groups: FakeCgroups) -> None:
    groups.put("/a.slice", {SDA: (4096, 0, 1, 0)}, limits="")
    collector = collector_of(lambda: pytest.fail("attached"))
    reading = collector.read()
    assert set(waits_of(reading).values()) == {(RAW_MISSING, RAW_MISSING)}
    assert reading.events == ()


def test_what_cannot_be_timed_is_missing_and_an_event_says_why(collector_of: Open) -> None:
    def refused() -> ThrottleProgram:
        raise OSError(1, "no fentry here")

    collector = collector_of(refused)
    reading = until(collector, lambda one: bool(one.events))
    assert [event.text for event in reading.events] == ["no throttle wait of cgroups: no fentry here"]
    assert set(waits_of(reading).values()) == {(RAW_MISSING, RAW_MISSING)}
    assert collector.read().events == ()


def test_report_averages_the_time_in_which_waits_were_timed(collector_of: Open, groups: FakeCgroups) -> None:
    program = HandProgram()
    collector = collector_of(lambda: program)
    moments: list[tuple[Table, dict[str, Histograms]]] = [(before_attaching(until(collector, attached)), {})]
    for ios in (0, 120, 300):
        program.rows = [[number(groups, "/a.slice"), 8, 0, ios, ios * 2_000_000]]
        program.cells = [[0, 71, ios - (0 if ios < 300 else 120)]]
        reading = collector.read()
        moments.append((reading.tables[CGROUP.name], dict(reading.histograms)))
    samples = [
        replace(sample(at), tables={CGROUP.name: table}, histograms=histograms)
        for at, (table, histograms) in enumerate(moments)
    ]
    steps = [Step(before, now) for before, now in itertools.pairwise(samples)]
    documents = [json.loads(line) for line in report_json(steps, ReportOptions(("cgroups",)))]
    rows = [next(row for row in one["cgroups"] if row["name"] == "/a.slice sda") for one in documents]
    assert [row["throttled_per_s"] for row in rows] == [None, 120, 180]
    assert [row["throttle_wait_ms"] for row in rows] == [None, 2, 2]
    # Bucket 71: 15 to 16 times 2^7 units of 1,024 ns.
    assert rows[1]["throttle_p99_ms"] == pytest.approx(2.0316, abs=0.001)
    lines = list(report_text(steps, ReportOptions(("cgroups",), all_disks=True)))
    average = next(line for line in reversed(lines) if "/a.slice sda" in line).split()
    assert average[-3:] == ["150.0", "2.000", "2.032"]


def before_attaching(reading: Reading) -> Table:
    """Return the table as it was before the programs were attached."""
    table = reading.tables[CGROUP.name]
    values = table.values.copy()
    values[:, -2:] = RAW_MISSING
    return Table(CGROUP, table.rows, values)
