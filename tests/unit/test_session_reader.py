"""Reading while it grows, gaps, clocks that step, and what the notice says."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from collectors.session.reader import SessionReader
from collectors.session.writer import SessionWriter
from engine.errors import LunscopeError
from engine.replacing import replace
from tests.session_samples import SECOND_NS, Machine, assert_same


def test_a_reader_follows_a_file_that_is_being_written(tmp_path: Path) -> None:
    machine = Machine()
    samples = [machine.sample() for _ in range(130)]
    with SessionWriter(tmp_path / "a.lun") as writer:
        writer.write(samples[0])
        with SessionReader(tmp_path / "a.lun") as reader:
            for index, sample in enumerate(samples[1:], 1):
                assert len(reader) == index
                writer.write(sample)
                assert reader.end_ns == sample.time_ns
                assert_same(reader.sample_at(index), sample)


def test_closing_beside_a_reader_leaves_a_complete_file(tmp_path: Path) -> None:
    machine = Machine()
    writer = SessionWriter(tmp_path / "a.lun")
    writer.write(machine.sample())
    with SessionReader(tmp_path / "a.lun") as reader:
        assert reader.sample_at(0) is not None
        writer.close()
        assert reader.complete
        assert reader.notice == ""
    copy = tmp_path / "mailed" / "a.lun"
    copy.parent.mkdir()
    shutil.copy(tmp_path / "a.lun", copy)
    with SessionReader(copy) as reader:
        assert (len(reader), reader.notice) == (1, "")


def _recording(path: Path, count: int, gaps: frozenset[int] = frozenset(), slept_ns: int = 0) -> None:
    machine = Machine()
    with SessionWriter(path) as writer:
        for index in range(count):
            sample = machine.sample()
            if index >= count // 2:
                sample = replace(sample, time_ns=sample.time_ns + slept_ns)
            writer.write(sample, gap=index in gaps)


def test_a_gap_has_no_predecessor(tmp_path: Path) -> None:
    _recording(tmp_path / "a.lun", 6, gaps=frozenset({3}))
    with SessionReader(tmp_path / "a.lun") as reader:
        assert [step.previous is None for step in reader.steps(0, 5)] == [True, False, False, True, False, False]


@pytest.mark.parametrize(("slept_s", "is_gap"), [(3600, True), (1, False), (-3600, False)])
def test_suspend_is_a_gap_and_a_clock_set_right_is_not(tmp_path: Path, slept_s: int, is_gap: bool) -> None:
    _recording(tmp_path / "a.lun", 6, slept_ns=slept_s * SECOND_NS)
    with SessionReader(tmp_path / "a.lun") as reader:
        assert [step.previous is None for step in reader.steps(1, 5)] == [False, False, is_gap, False, False]
        assert reader.interval_s == pytest.approx(1)


def test_a_wall_clock_set_back_does_not_lose_the_way(tmp_path: Path) -> None:
    _recording(tmp_path / "a.lun", 100, slept_ns=-20 * SECOND_NS)
    with SessionReader(tmp_path / "a.lun") as reader:
        for index in range(100):
            times = reader.times_at(index)
            assert times is not None
            found = reader.times_at(reader.index_at(times[0]))
            assert found is not None
            assert abs(found[0] - times[0]) < 2 * SECOND_NS


def test_indexes_outside_are_index_errors(tmp_path: Path) -> None:
    _recording(tmp_path / "a.lun", 3)
    with SessionReader(tmp_path / "a.lun") as reader:
        for index in (-1, 3, 2**70):
            with pytest.raises(IndexError):
                reader.sample_at(index)
        assert [step.current for step in reader.steps(-5, 99)][2] is reader.sample_at(2)


def test_a_recording_whose_samples_are_all_in_its_lost_log_says_so(tmp_path: Path) -> None:
    with SessionWriter(tmp_path / "a.lun"):
        shutil.copy(tmp_path / "a.lun", tmp_path / "mailed.lun")
    with pytest.raises(LunscopeError, match=r"holds no samples .*without its -wal"):
        SessionReader(tmp_path / "mailed.lun")


def test_an_old_recording_that_was_not_closed_says_so(tmp_path: Path) -> None:
    machine, writer = Machine(), SessionWriter(tmp_path / "a.lun")
    for _ in range(3):
        writer.write(machine.sample())
    with SessionReader(tmp_path / "a.lun") as reader:
        assert reader.complete
        assert "not closed by its recorder: at most the last tick is missing" in reader.notice
    writer.close()


def test_a_main_file_alone_shows_what_was_checkpointed(tmp_path: Path) -> None:
    machine, mailed = Machine(), tmp_path / "mailed.lun"
    samples = [machine.sample() for _ in range(3)]
    with SessionWriter(tmp_path / "a.lun") as writer:
        for sample in samples:
            writer.write(sample)
        _checkpoint(tmp_path / "a.lun")
        writer.write(machine.sample())
        shutil.copy(tmp_path / "a.lun", mailed)
    with SessionReader(mailed) as reader:
        assert len(reader) == 3
        assert_same(reader.sample_at(2), samples[2])
        assert "without its -wal" in reader.notice


def _checkpoint(path: Path) -> None:
    connection = sqlite3.connect(path)
    busy = frames = moved = 1
    while busy or frames != moved:
        busy, frames, moved = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    connection.close()


def test_main_file_and_log_make_a_whole_recording_elsewhere(tmp_path: Path) -> None:
    machine, elsewhere = Machine(), tmp_path / "elsewhere"
    elsewhere.mkdir()
    with SessionWriter(tmp_path / "a.lun") as writer:
        for _ in range(5):
            writer.write(machine.sample())
        for suffix in ("", "-wal"):
            shutil.copy(tmp_path / f"a.lun{suffix}", elsewhere / f"a.lun{suffix}")
    with SessionReader(elsewhere / "a.lun") as reader:
        assert len(reader) == 5


@pytest.mark.slow
def test_reading_needs_no_screen(tmp_path: Path) -> None:
    _recording(tmp_path / "a.lun", 5)
    code = """
import sys
from collectors.reports import export; from collectors.sources import recorder, replay
from collectors.session.reader import SessionReader
with SessionReader(sys.argv[1]) as reader:
    lines = list(export.export_lines(reader, "csv"))
assert len(lines) == 1 + 5 * 6, len(lines)
loaded = {name.split(".")[0] for name in sys.modules}
assert not loaded & {"textual", "rich", "tui"}, loaded
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "a.lun")], check=True, timeout=60)


def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(LunscopeError, match=r"b\.lun: No such file"):
        SessionReader(tmp_path / "b.lun")
