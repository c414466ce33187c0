"""Work on md arrays as /proc/mdstat tells it: progress, speed, share of the disks, begin and end."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from collectors.model import MISSING, Device, Frame, Rows, Sample, Table, Topology
from collectors.subject import Interval
from collectors.tables.background.reader import BackgroundCollector, parse_mdstat
from collectors.tables.background.schema import BACKGROUND
from collectors.tables.background.sentences import work_sentences
from collectors.tables.background.subject import WORKS, background_tables
from tests.unit import raw_samples as raw

IDLE = """Personalities : [raid1] [raid0]
md1 : active raid1 sdb[1] sda[0]
      523264 blocks super 1.2 [2/2] [UU]

md0 : active raid0 sdd[1] sdc[0]
      1044480 blocks super 1.2 64k chunks

unused devices: <none>
"""
CHECK = IDLE.replace(
    "[UU]\n",
    "[UU]\n      [==>..................]  check = 12.5% (65408/523264) finish=0.5min speed=13081K/sec\n"
    "      bitmap: 0/1 pages [0KB], 65536KB chunk\n",
    1,
)
REBUILD = """md5 : active raid5 sdc[3] sdb[1] sda[0]
      1046528 blocks level 5, 64k chunk, algorithm 2 [3/2] [UU_]
      [>....................]  recovery =  0.0% (0/523264) finish=8.7min speed=0K/sec

md1 : active raid1 sdc[1] sdb[0]
      523264 blocks super 1.2 [2/2] [UU]
      \tresync=DELAYED
"""


def test_what_is_under_way_is_read_with_its_members() -> None:
    (check,) = parse_mdstat(CHECK)
    assert (check.key, check.waits, check.done_bytes, check.total_bytes) == (
        "md1 check",
        False,
        65408 << 10,
        523264 << 10,
    )
    assert (check.members, check.missing_members) == (2, 0)
    rebuild, delayed = parse_mdstat(REBUILD)
    assert (rebuild.key, rebuild.done_bytes, rebuild.members, rebuild.missing_members) == ("md5 recovery", 0, 3, 1)
    assert (delayed.key, delayed.waits, delayed.done_bytes) == ("md1 resync", True, None)


def test_progress_of_raid10_is_that_of_its_array() -> None:
    line = (
        "md2 : active raid10 sdd[3] sdc[2] sdb[1] sda[0]\n      1046528 blocks super 1.2 512K chunks {}[4/4] [UUUU]\n"
    )
    work = "      [=>...]  {} = 5.0% (1000/1046528) finish=0.5min speed=13081K/sec\n"
    for copies, action, kib in (("2 near-copies ", "check", 500), ("2 near-copies 2 far-copies ", "resync", 1000),
                                ("2 far-copies ", "recovery", 1000)):  # fmt: skip
        (found,) = parse_mdstat((line + work).format(copies, action))
        assert found.done_bytes == kib << 10


@pytest.mark.parametrize("text", ["", IDLE, "md1 : active raid1 [2/2] [UU]\n" * 3, CHECK.replace("65408", "9" * 20)])
def test_nothing_under_way_and_hostile_text_are_no_rows(text: str) -> None:
    assert list(parse_mdstat(text)) == []


def test_begin_and_end_are_events_once(tmp_path: Path) -> None:
    said, reader = [], BackgroundCollector(str(tmp_path))
    assert reader.read().tables == {}
    for text in (IDLE, CHECK, CHECK, IDLE):
        (tmp_path / "mdstat").write_text(text)
        reading = reader.read()
        said.append([event.text for event in reading.events])
        assert len(reading.tables[BACKGROUND.name].rows) == (text is CHECK)
    assert said == [[], ["md1: check began"], [], ["md1: check ended after 0 s"]]


def test_what_ran_before_has_no_begin(tmp_path: Path) -> None:
    reader = BackgroundCollector(str(tmp_path))
    (tmp_path / "mdstat").write_text(CHECK)
    assert reader.read().events == ()
    (tmp_path / "mdstat").write_text(IDLE)
    assert [event.text for event in reader.read().events] == ["md1: check ended"]


def sample(
    at_s: int, done_mb: int, sectors: int, slaves: tuple[str, ...] = ("sda", "sdb"), sampled_ns: int = int(MISSING)
) -> Sample:
    rows = Rows(("md1 check",), ("md1 check",))
    work = Table(
        BACKGROUND, rows, np.array([[0, done_mb << 20, 1000 << 20, 2, 0, int(MISSING), sampled_ns]], np.uint64)
    )
    disks = raw.disks(Rows(("a", "b"), ("sda", "sdb")), {"read_sectors": sectors}, {"read_sectors": sectors})
    topology = Topology({"md1:9:1": Device("md1:9:1", "md1", "md", 9, 1, slaves=slaves)})
    return Sample(at_s * raw.SECOND_NS, at_s * raw.SECOND_NS, topology, {"background": work, "disk": disks})


def test_speed_time_left_and_share_of_the_disks() -> None:
    first, second = sample(0, 100, 0), sample(2, 140, 2 * 40 * 2048)
    table = background_tables(Interval(first, second, 2.0), second.tables["background"])["background"]
    assert table.value("done_pct", 0) == pytest.approx(14.0)
    assert table.value("bytes_per_s", 0) == 20 << 20
    assert table.value("left_min", 0) == pytest.approx(860 / 20 / 60)
    # Each of the two disks moved twice what the check read of it.
    assert table.value("share_pct", 0) == pytest.approx(50.0)
    assert set(table.columns) == {field.id for field in WORKS.fields}
    assert np.isnan(table.value("lasts_s", 0))


def test_the_speed_is_over_the_time_between_the_readings_of_the_progress() -> None:
    first, second = (
        sample(0, 100, 0, sampled_ns=7 * raw.SECOND_NS),
        sample(2, 140, 2 * 40 * 2048, sampled_ns=11 * raw.SECOND_NS),
    )
    table = background_tables(Interval(first, second, 2.0), second.tables["background"])["background"]
    assert table.value("bytes_per_s", 0) == 10 << 20


def test_progress_bears_the_time_at_which_it_was_read(tmp_path: Path) -> None:
    (tmp_path / "mdstat").write_text(CHECK)
    before_ns = time.monotonic_ns()
    table = BackgroundCollector(str(tmp_path)).read().tables[BACKGROUND.name]
    (sampled_ns,) = (
        int(value) for value in table.values[:, [column.id for column in BACKGROUND.columns].index("sampled_ns")]
    )
    assert before_ns <= sampled_ns <= time.monotonic_ns()


def test_a_member_and_the_array_say_what_runs_beneath() -> None:
    first, second = sample(0, 100, 0), sample(2, 140, 2 * 40 * 2048)
    tables = background_tables(Interval(first, second, 2.0), second.tables["background"])
    devices = {
        name: Device(name, name, "disk", 8, at, holders=("md1",) if name != "sdz" else ())
        for at, name in enumerate(("sda", "sdz"))
    }
    frame = Frame(0, 0, 2.0, tables, Topology({**second.topology.devices, **devices}))
    said = ["beneath: md1 check 14 % done, 20 MiB/s of each disk, 0.717 min left, 50 % of the bytes of its disks"]
    assert list(work_sentences(frame, "md1:9:1")) == list(work_sentences(frame, "sda")) == said
    assert list(work_sentences(frame, "sdz")) == []


def test_without_a_member_that_is_a_whole_disk_the_share_is_missing() -> None:
    first, second = sample(0, 100, 0, ("sda1", "sdb1")), sample(2, 140, 500, ("sda1", "sdb1"))
    table = background_tables(Interval(first, second, 2.0), second.tables["background"])["background"]
    assert np.isnan(table.value("share_pct", 0))
