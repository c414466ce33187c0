"""Control groups: read, derived, reported, recorded, exported."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event as StopFlag

import numpy as np
import pytest

from collectors.kernel.identity import device_key
from collectors.model import MISSING, FrameTable, Rows, Sample, Step, Table
from collectors.rates import derive
from collectors.reports.export import Selection, export_lines
from collectors.reports.report import ReportOptions, report_json, report_text
from collectors.session.reader import SessionReader
from collectors.session.writer import SessionWriter
from collectors.sources.live import LiveSource
from collectors.tables.block.schema import DISK
from collectors.tables.cgroup import reader, tree
from collectors.tables.cgroup.reader import CgroupCollector
from collectors.tables.cgroup.schema import CGROUP
from collectors.tables.cgroup.subject import CGROUPS
from collectors.tables.cgroup.tree import find_hierarchy, scan
from engine.replacing import replace
from tests.fake_cgroups import FakeCgroups, put_blkio
from tests.fake_kernel import FakeDisk, FakeKernel
from tests.unit.raw_samples import RAW_MISSING, sample

SDA, SDB = "8:0", "8:16"
Collect = Callable[[], Table]


@pytest.fixture
def groups(tmp_path: Path) -> FakeCgroups:
    groups = FakeCgroups(tmp_path / "sys")
    groups.put("/", {SDA: (40960, 8192, 10, 2), SDB: (0, 512, 0, 1)})
    groups.put("/a.slice", {SDA: (40960, 8192, 10, 2)})
    groups.put("/a.slice/one.service", {SDA: (40960, 8192, 10, 2)}, stalled_us=(900, 700))
    groups.put("/idle.slice", {})
    return groups


@pytest.fixture
def collector(tmp_path: Path, groups: FakeCgroups) -> Iterator[CgroupCollector]:
    hierarchy = find_hierarchy(str(tmp_path / "sys"))
    assert hierarchy is not None
    collector = CgroupCollector(hierarchy, _disks)
    yield collector
    collector.close()


_DISK_ROWS = Rows((device_key("sda", 8, 0, 1), device_key("sdb", 8, 16, 2)), ("sda", "sdb"))
_DISKS = Table(DISK, _DISK_ROWS, np.zeros((2, len(DISK.columns)), np.uint64))


def _disks() -> Table:
    return _DISKS


def read(collector: CgroupCollector) -> Table:
    return collector.read().tables["cgroup"]


def rescan(collector: CgroupCollector) -> None:
    """As the thread does every two seconds."""
    collector._tree.found = scan(collector._hierarchy)


def column(table: Table, name: str) -> dict[str, int]:
    return dict(zip(table.rows.names, table.column(name).tolist(), strict=True))


def test_a_row_for_each_group_and_device_with_any_io(collector: CgroupCollector) -> None:
    table = read(collector)
    assert table.rows.names == ("/ sda", "/ sdb", "/a.slice sda", "/a.slice/one.service sda")
    assert column(table, "read_bytes")["/a.slice sda"] == 40960
    assert column(table, "psi_some_us")["/a.slice/one.service sda"] == 900
    assert column(table, "cost_usage_us")["/ sda"] == RAW_MISSING


def test_what_stands_still_is_the_same_table(collector: CgroupCollector) -> None:
    assert read(collector) is read(collector)


def test_growth_deep_down_is_seen_because_its_ancestors_grow(collector: CgroupCollector, groups: FakeCgroups) -> None:
    first = read(collector)
    for path in ("/", "/a.slice", "/a.slice/one.service"):
        groups.put(path, {SDA: (81920, 8192, 20, 2)}, stalled_us=(1000, 800))
    second = read(collector)
    assert column(second, "reads")["/a.slice/one.service sda"] == 20
    assert column(second, "psi_full_us")["/a.slice/one.service sda"] == 800
    assert column(first, "reads")["/a.slice/one.service sda"] == 10


def test_nothing_is_read_below_a_group_that_stands_still(collector: CgroupCollector, groups: FakeCgroups) -> None:
    read(collector)
    groups.put("/a.slice/one.service", {SDA: (81920, 8192, 20, 2)}, stalled_us=(9000, 9000))
    assert column(read(collector), "reads")["/a.slice/one.service sda"] == 10
    groups.put("/", {SDA: (81920, 8192, 20, 2)}, stalled_us=(1, 0))
    groups.put("/a.slice", {SDA: (81920, 8192, 20, 2)}, stalled_us=(1, 0))
    table = read(collector)
    assert column(table, "reads")["/a.slice/one.service sda"] == 20
    assert column(table, "psi_some_us")["/a.slice/one.service sda"] == 9000


def test_one_that_came_has_no_rates_and_one_that_went_no_row(collector: CgroupCollector, groups: FakeCgroups) -> None:
    before = read(collector)
    groups.put("/b.slice", {SDA: (4096, 0, 1, 0)})
    rescan(collector)
    now = read(collector)
    table = derive(*_samples(before, now)).tables["cgroups"]
    assert np.isnan(figure(table, "/b.slice sda", "iops"))
    assert figure(table, "/a.slice sda", "iops") == 0
    groups.remove("/b.slice")
    groups.remove("/a.slice/one.service")
    rescan(collector)
    assert read(collector).rows.names == ("/ sda", "/ sdb", "/a.slice sda")


def test_a_group_made_again_under_its_name_is_another_one(collector: CgroupCollector, groups: FakeCgroups) -> None:
    before = read(collector)
    kept = (groups.root / "a.slice/one.service").rename(groups.root / "a.slice/kept")
    groups.put("/a.slice/one.service", {SDA: (1 << 40, 0, 1 << 30, 0)})
    kept.rename(groups.root.parent / "kept")
    rescan(collector)
    groups.put("/", {SDA: (50000, 8192, 11, 2)})
    now = read(collector)
    row = now.rows.names.index("/a.slice/one.service sda")
    assert now.rows.keys[row] not in before.rows.keys
    table = derive(*_samples(before, now)).tables["cgroups"]
    assert np.isnan(figure(table, "/a.slice/one.service sda", "iops"))


def test_limits_follow_what_is_set(collector: CgroupCollector, groups: FakeCgroups) -> None:
    assert column(read(collector), "write_limit_ios")["/a.slice sda"] == RAW_MISSING
    groups.put("/a.slice", {SDA: (40960, 8192, 10, 2)}, limits="8:0 rbps=max wbps=1048576 riops=max wiops=120\n")
    rescan(collector)
    table = read(collector)
    assert column(table, "write_limit_ios")["/a.slice sda"] == 120
    assert column(table, "write_limit_bytes")["/a.slice sda"] == 1048576
    assert column(table, "read_limit_ios")["/a.slice sda"] == RAW_MISSING


def test_files_that_may_not_stay_open_are_opened_each_time(
    tmp_path: Path, groups: FakeCgroups, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "MOST_OPEN", 0)
    hierarchy = find_hierarchy(str(tmp_path / "sys"))
    assert hierarchy is not None
    collector = CgroupCollector(hierarchy, _disks)
    try:
        read(collector)
        groups.put("/", {SDA: (50000, 8192, 11, 2)})
        assert column(read(collector), "reads")["/ sda"] == 11
    finally:
        collector.close()


def test_names_of_hostile_groups_are_cleaned(tmp_path: Path) -> None:
    groups = FakeCgroups(tmp_path / "sys")
    groups.put("/\x1b[31mred", {SDA: (0, 0, 0, 0)})
    os_name = b"/\xff".decode("utf-8", "surrogateescape")
    groups.put(os_name, {SDA: (0, 0, 0, 0)})
    hierarchy = find_hierarchy(str(tmp_path / "sys"))
    assert hierarchy is not None
    collector = CgroupCollector(hierarchy, _disks)
    try:
        before, now = read(collector), read(collector)
    finally:
        collector.close()
    assert all(name.encode("utf-8") for name in now.rows.names)
    steps = [Step(*_samples(before, now))]
    text = "\n".join(report_text(steps, ReportOptions(("cgroups",), all_disks=True)))
    document = "\n".join(report_json(steps, ReportOptions(("cgroups",))))
    assert "red" in text
    assert "\x1b" not in text
    assert "\\u001b" not in document


def test_a_host_without_io_accounting_has_no_table(tmp_path: Path) -> None:
    assert find_hierarchy(str(tmp_path)) is None
    FakeCgroups(tmp_path, controllers="cpu memory")
    assert find_hierarchy(str(tmp_path)) is None


@pytest.mark.parametrize("suffix", ["_recursive", ""])
def test_cgroup_v1(tmp_path: Path, suffix: str) -> None:
    put_blkio(tmp_path, "/", {SDA: (4096, 1, 0, 0)}, suffix)
    folder = put_blkio(tmp_path, "/job", {SDA: (4096, 1, 0, 0)}, suffix)
    (folder / "blkio.throttle.write_bps_device").write_text("8:0 1048576\n")
    hierarchy = find_hierarchy(str(tmp_path))
    assert hierarchy is not None
    collector = CgroupCollector(hierarchy, _disks)
    try:
        before = read(collector)
        put_blkio(tmp_path, "/job", {SDA: (8192, 2, 1024, 4)}, suffix)
        if suffix:
            put_blkio(tmp_path, "/", {SDA: (8192, 2, 1024, 4)}, suffix)
        now = read(collector)
    finally:
        collector.close()
    assert column(now, "reads") == {"/ sda": 2 if suffix else 1, "/job sda": 2}
    assert column(now, "write_limit_bytes")["/job sda"] == 1048576
    table = derive(*_samples(before, now)).tables["cgroups"]
    assert figure(table, "/job sda", "writes_per_s") == 4
    assert np.isnan(figure(table, "/job sda", "psi_some_pct"))


# ------------------------------------------------------------------ figures


def _samples(before: Table, now: Table, elapsed_s: float = 1.0) -> tuple[Sample, Sample]:
    first, second = sample(1), sample(1 + elapsed_s)
    return replace(first, tables={"cgroup": before}), replace(second, tables={"cgroup": now})


def figure(table: FrameTable, name: str, field_id: str) -> float:
    return table.value(field_id, table.rows.names.index(name))


def raw(**values: int) -> Table:
    row = {column.id: int(MISSING) for column in CGROUP.columns} | values
    return Table(CGROUP, _ONE, np.array([[row[column.id] for column in CGROUP.columns]], np.uint64))


_ONE = Rows((f"61 {_DISK_ROWS.keys[0]} /job",), ("/job sda",))
_BEGIN = {"reads": 0, "writes": 0, "read_bytes": 0, "write_bytes": 0, "discards": 0, "discard_bytes": 0}


def derived(before: Table, now: Table, elapsed_s: float = 1.0) -> FrameTable:
    return derive(*_samples(before, now, elapsed_s)).tables["cgroups"]


def test_figures_of_two_seconds() -> None:
    limits = {"write_limit_bytes": 1 << 20, "read_limit_ios": 1000}
    before = raw(**_BEGIN, **limits, psi_some_us=0, psi_full_us=0, cost_usage_us=0, cost_vrate_hundredths=10000)
    now = raw(
        reads=100,
        read_bytes=819200,
        writes=20,
        write_bytes=1 << 20,
        discards=4,
        discard_bytes=0,
        psi_some_us=1_000_000,
        psi_full_us=500_000,
        cost_usage_us=400_000,
        cost_vrate_hundredths=9050,
        **limits,
    )
    table = derived(before, now, 2.0)
    wanted = {
        "iops": 60, "reads_per_s": 50, "writes_per_s": 10, "bytes_per_s": 409600 + (1 << 19), "discards_per_s": 2,
        "read_bytes_per_io": 8192, "limit_pct": 50, "write_limit_bytes_per_s": 1 << 20, "read_limit_per_s": 1000,
        "psi_some_pct": 50, "psi_full_pct": 25, "cost_usage": 20, "cost_vrate": 90.5,
    }  # fmt: skip
    assert {name: table.value(name, 0) for name in wanted} == pytest.approx(wanted)
    assert np.isnan(table.value("cost_wait", 0))
    assert np.isnan(table.value("write_limit_per_s", 0))


def test_discards_count_for_the_limit_of_writes() -> None:
    now = raw(**(_BEGIN | {"writes": 30, "discards": 30}), write_limit_ios=60)
    assert derived(raw(**_BEGIN, write_limit_ios=60), now).value("limit_pct", 0) == 100


def test_no_limit_no_share() -> None:
    assert np.isnan(derived(raw(**_BEGIN), raw(**_BEGIN)).value("limit_pct", 0))


def test_counters_that_fell_give_no_rates_and_leave_pressure_alone() -> None:
    before = raw(**(_BEGIN | {"reads": 100}), psi_some_us=0)
    table = derived(before, raw(**_BEGIN, psi_some_us=250_000))
    assert np.isnan(table.value("iops", 0))
    assert table.value("psi_some_pct", 0) == 25


def test_a_group_held_up_altogether_is_worth_a_line() -> None:
    idle = raw(**_BEGIN, psi_some_us=0, psi_full_us=0)
    assert not CGROUPS.active(derived(idle, idle)).any()
    assert CGROUPS.active(derived(idle, raw(**_BEGIN, psi_some_us=900_000, psi_full_us=0))).all()


def test_averages_of_pressure_and_of_io_are_each_over_the_time_in_which_they_are_known() -> None:
    """The counters of I/O fell in the second of three seconds, those of pressure in the third."""
    moments = [
        raw(**(_BEGIN | {"reads": reads}), psi_some_us=stalled_us)
        for reads, stalled_us in ((0, 0), (100, 500_000), (40, 600_000), (340, 0))
    ]
    samples = [replace(sample(at), tables={"cgroup": table}) for at, table in enumerate(moments)]
    assert CGROUPS.report is not None
    averages = CGROUPS.report.averages()
    for before, now in itertools.pairwise(samples):
        averages.add(Step(before, now))
    table = averages.tables()["cgroups"]
    assert table.value("iops", 0) == pytest.approx(200)
    assert table.value("psi_some_pct", 0) == pytest.approx(30)


def test_the_report_averages_what_it_could_measure() -> None:
    moments = [raw(**(_BEGIN | {"reads": reads}), psi_some_us=0, psi_full_us=0) for reads in (0, 100, 100, 400)]
    samples = [replace(sample(at), tables={"cgroup": table}) for at, table in enumerate(moments)]
    steps = [Step(before, now) for before, now in itertools.pairwise(samples)]
    lines = list(report_text(steps, ReportOptions(("cgroups",))))
    assert lines[-1].split()[:4] == ["Average:", "/job", "sda", "133.3"]
    assert json.loads(next(iter(report_json(steps))))["cgroups"] == []
    document = json.loads(next(iter(report_json(steps, ReportOptions(("cgroups",))))))
    (row,) = document["cgroups"]
    assert (row["name"], row["cgroup"], row["device"], row["reads_per_s"]) == ("/job sda", "/job", "sda", 100)
    assert row["psi_full_pct"] == 0
    assert row["cost_wait"] is None


def test_long_paths_keep_their_end() -> None:
    path = "/kubepods.slice/kubepods-burstable.slice/cri-containerd-0123456789.scope"
    rows = Rows(("1 sda:8:0#1 /x",), (f"{path} sda",))
    (label,) = CGROUPS.labels(rows, sample(0).topology)
    assert label.startswith("+")
    assert label.endswith("-0123456789.scope sda")
    assert len(label) == 32


def test_groups_are_recorded_replayed_and_exported(tmp_path: Path) -> None:
    kernel = FakeKernel(tmp_path)
    kernel.add(FakeDisk("sda"))
    kernel.write_diskstats()
    groups = FakeCgroups(kernel.sysfs)
    groups.put("/job", {SDA: (4096, 0, 1, 0)}, limits="8:0 rbps=max wbps=max riops=100 wiops=max\n")
    source = LiveSource(0.1, kernel.procfs, kernel.sysfs, "kernel", first_topology_s=30)
    taken = []
    try:
        for step in source.steps(StopFlag()):
            taken.append(step.current)
            groups.put("/job", {SDA: (4096 * (len(taken) + 1), 0, len(taken) + 1, 0)}, stalled_us=(1000, 0))
            if len(taken) == 3:
                break
    finally:
        source.close()
    with SessionWriter(tmp_path / "a.luns") as writer:
        for one in taken:
            writer.write(one)
    reader = SessionReader(tmp_path / "a.luns")
    lines = [json.loads(line) for line in export_lines(reader, "jsonl", Selection(("cgroups",)))]
    assert [line["name"] for line in lines] == ["/job sda"] * 3
    assert lines[0]["reads_per_s"] is None
    assert lines[1]["reads_per_s"] == pytest.approx(1 / lines[1]["interval_s"], rel=0.01)
    assert lines[1]["read_limit_per_s"] == 100
    assert lines[1]["id"] == "/job sda:8:0#1"
    steps = reader.steps(reader.first, len(reader) - 1)
    assert any("/job sda" in line for line in report_text(steps, ReportOptions(("cgroups",))))


def test_groups_beyond_the_limit_are_an_event_once(
    tmp_path: Path, groups: FakeCgroups, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "MOST_GROUPS", 3)
    monkeypatch.setattr(reader, "MOST_GROUPS", 3)
    hierarchy = find_hierarchy(str(tmp_path / "sys"))
    assert hierarchy is not None
    collector = CgroupCollector(hierarchy, _disks)
    try:
        first, second = collector.read(), collector.read()
    finally:
        collector.close()
    assert [event.text for event in first.events] == ["cgroups: only 3 groups are read, the rest is left out"]
    assert not second.events
    assert "/a.slice/one.service sda" not in first.tables["cgroup"].rows.names


def test_as_many_groups_as_the_limit_are_no_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    groups = FakeCgroups(tmp_path / "sys")
    groups.put("/", {SDA: (40960, 8192, 10, 2)})
    groups.put("/a.slice", {SDA: (40960, 8192, 10, 2)})
    monkeypatch.setattr(tree, "MOST_GROUPS", 2)
    hierarchy = find_hierarchy(str(tmp_path / "sys"))
    assert hierarchy is not None
    found = scan(hierarchy)
    assert len(found.groups) == 2
    assert not found.left_out
