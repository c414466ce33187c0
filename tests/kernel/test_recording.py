"""Recording where it hurts: killed, on a full disk, read by others, in a folder that takes no files."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event as StopFlag

import pytest

from collectors.model import Sample, Step
from collectors.session.reader import SessionReader
from collectors.session.writer import SessionWriter
from collectors.sources.recorder import RecordingSource
from engine.errors import LunscopeError
from engine.events import EventKind
from engine.running.control import LoadControl
from tests import needs
from tests.kernel.forked_command import Forked
from tests.session_samples import Machine, assert_same
from tui.options.watching import Watching, open_source

_RECORDER = """
import sys
import time
from collectors.session.writer import SessionWriter
from tests.session_samples import Machine
machine = Machine(disks=50, active=25)
writer = SessionWriter(sys.argv[1])
while True:
    writer.write(machine.sample())
    print(writer.ticks, flush=True)
"""


@contextlib.contextmanager
def _recorder(path: Path) -> Iterator[Callable[[int], int]]:
    """A recorder in another process; call with a number of ticks to wait until it says they are written."""
    process = subprocess.Popen([sys.executable, "-c", _RECORDER, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    output = process.stdout

    def wait_for(ticks: int) -> int:
        written = 0
        while written < ticks:
            line = output.readline()
            assert line, "the recorder ended"
            written = int(line)
        return written

    try:
        yield wait_for
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        output.close()


def _written(count: int) -> list[Sample]:
    machine = Machine(disks=50, active=25)
    return [machine.sample() for _ in range(count)]


@pytest.mark.parametrize("ticks", [1, 59, 61, 400])
def test_kill_9_loses_no_acknowledged_tick(tmp_path: Path, ticks: int) -> None:
    path = tmp_path / "a.lun"
    with _recorder(path) as wait_for:
        acknowledged = wait_for(ticks)
    assert path.with_name("a.lun-wal").exists()
    with SessionReader(path) as reader:
        count = len(reader)
        assert count >= acknowledged
        for index, sample in enumerate(_written(count)):
            assert_same(reader.sample_at(index), sample)
        assert "not closed" in reader.notice
        assert "damaged" not in reader.notice


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "lunscope-test", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@needs.root
def test_a_full_disk_ends_the_recording_and_keeps_what_was_written(small_disk: Path) -> None:
    path, machine = small_disk / "a.lun", Machine(disks=200, active=200)
    samples: list[Sample] = []

    def fill(writer: SessionWriter) -> None:
        while True:
            samples.append(machine.sample())
            writer.write(samples[-1])

    with SessionWriter(path) as writer:
        with pytest.raises(LunscopeError, match=r"a\.lun: the disk is full.*free space") as caught:
            fill(writer)
        assert "\n" not in str(caught.value)
        written = writer.ticks
        assert 50 < written == len(samples) - 1
    with SessionReader(path) as reader:
        assert len(reader) == written
        for index in range(written):
            assert_same(reader.sample_at(index), samples[index])


@needs.root
def test_a_disk_that_is_full_from_the_start_leaves_nothing_behind(small_disk: Path) -> None:
    (small_disk / "filler").write_bytes(bytes((2 << 20) - 4096))
    with pytest.raises(LunscopeError, match=r"a\.lun: the disk is full"):
        SessionWriter(small_disk / "a.lun")
    assert [file.name for file in small_disk.iterdir()] == ["filler"]


class _Endless:
    seekable = False
    interval_s = 1.0

    def __init__(self) -> None:
        self._machine = Machine(disks=200, active=200)

    def steps(self, stop: StopFlag) -> Iterator[Step]:
        previous = None
        while not stop.is_set():
            current = self._machine.sample()
            yield Step(previous, current)
            previous = current

    def close(self) -> None:
        pass


@needs.root
def test_watching_goes_on_when_the_disk_is_full(small_disk: Path) -> None:
    stop, source = StopFlag(), RecordingSource(_Endless(), SessionWriter(small_disk / "a.lun"))
    events = []
    after = 0
    for step in source.steps(stop):
        events += [event for event in step.current.events if event.kind is EventKind.MONITOR]
        after += bool(events)
        if after == 20:
            stop.set()
    assert len(events) == 1
    assert "the disk is full" in events[0].text
    source.close()
    with SessionReader(small_disk / "a.lun") as reader:
        assert len(reader) == source.ticks > 50


@pytest.fixture
def read_only_copy(tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """Copies files of a folder to a file system and makes it read-only."""
    folder = tmp_path / "cd"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "lunscope-test", str(folder)], check=True)

    def copy(*files: Path) -> Path:
        for file in files:
            shutil.copy(file, folder)
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        return folder / files[0].name

    yield copy
    subprocess.run(["umount", str(folder)], check=True)


@needs.root
def test_a_closed_recording_is_read_from_a_read_only_disk(tmp_path: Path, read_only_copy: Callable[..., Path]) -> None:
    samples = _written(70)
    with SessionWriter(tmp_path / "a.lun") as writer:
        for sample in samples:
            writer.write(sample)
    with SessionReader(read_only_copy(tmp_path / "a.lun")) as reader:
        assert_same(reader.sample_at(69), samples[69])
        assert reader.notice == ""


@needs.root
def test_a_killed_recording_on_a_read_only_disk_shows_what_it_can_and_says_so(
    tmp_path: Path, read_only_copy: Callable[..., Path]
) -> None:
    path = tmp_path / "a.lun"
    with _recorder(path) as wait_for:
        acknowledged = wait_for(300)
        while path.stat().st_size < 64 << 10:
            acknowledged = wait_for(acknowledged + 1)
    with SessionReader(read_only_copy(path, path.with_name("a.lun-wal"))) as reader:
        assert len(reader) > 0
        assert len(reader) >= acknowledged or "shown up to the last checkpoint" in reader.notice
        for index, sample in enumerate(_written(len(reader))):
            assert_same(reader.sample_at(index), sample)


@needs.root
def test_the_file_of_another_user_is_read_by_root_without_leaving_anything(tmp_path: Path) -> None:
    with SessionWriter(tmp_path / "a.lun") as writer:
        writer.write(Machine().sample())
    os.chown(tmp_path / "a.lun", 12345, 12345)
    with SessionReader(tmp_path / "a.lun") as reader:
        assert reader.sample_at(0) is not None
    assert [file.name for file in tmp_path.iterdir()] == ["a.lun"]


def _lunscope(*words: str) -> subprocess.Popen[str]:
    return Forked(*words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)


def _await_sample(path: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with contextlib.suppress(LunscopeError), SessionReader(path) as reader:
            assert len(reader) >= 1
            return
        time.sleep(0.02)
    pytest.fail("no sample after a minute")


def test_a_recording_that_is_killed_at_any_moment_after_its_first_tick_has_samples(tmp_path: Path) -> None:
    path = tmp_path / "a.lun"
    process = _lunscope("record", "--tier", "kernel", "-o", str(path))
    try:
        _await_sample(path)
    finally:
        process.kill()
        process.communicate()
    with SessionReader(path) as reader:
        assert reader.sample_at(0) is not None


def test_a_recording_holds_a_sample_before_anything_is_shown_or_driven(tmp_path: Path) -> None:
    path = tmp_path / "a.lun"
    source, recording = open_source(Watching(1.0, Path("/proc"), Path("/sys"), path, overwrite=False), LoadControl())
    try:
        _await_sample(path)
        assert recording is not None
        assert recording.ticks == 1
        with SessionReader(path) as reader:
            first = reader.sample_at(0)
            assert first is not None
            assert "disk" in first.tables
            assert first.topology.host.kernel
        first_step = next(source.steps(StopFlag()))
        assert first_step.previous is None, "nothing is measured against what has no facts"
    finally:
        source.close()
    with SessionReader(path) as reader:
        assert len(reader) == 2
        assert [step.previous for step in reader.steps(0, 2)] == [None, None]


def test_a_run_that_is_killed_as_soon_as_it_records_leaves_a_sample(tmp_path: Path) -> None:
    path = tmp_path / "a.lun"
    process = _lunscope("run", "--headless", "--tier", "kernel", "--size", "1m", "--record", str(path))
    try:
        _await_sample(path)
        (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(child), signal.SIGKILL)
    finally:
        process.kill()
        process.communicate()
    report = _lunscope("report", "--from", str(path))
    _, said = report.communicate(timeout=60)
    assert report.returncode == 0, said
    assert "Traceback" not in said


def test_a_recording_whose_file_goes_away_ends_with_1_and_says_why(tmp_path: Path) -> None:
    path = tmp_path / "a.lun"
    process = _lunscope("record", "--tier", "kernel", "-o", str(path), "--interval", "0.1")
    _await_sample(path)
    path.rename(tmp_path / "moved.lun")
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "was removed or replaced while recording" in said
    assert said.count("\n") == 1
