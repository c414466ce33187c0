"""A recording in progress is not overwritten, and a dead one leaves no lock behind."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from collectors.session.create_file import is_recording
from collectors.session.reader import SessionReader
from collectors.session.writer import SessionWriter
from engine.errors import RefusedError, UsageError
from tests.session_samples import Machine

_RECORDER = """
import sys, time
from collectors.session.writer import SessionWriter
from tests.session_samples import Machine
writer = SessionWriter(sys.argv[1])
writer.write(Machine().sample())
print("ready", flush=True)
time.sleep(600)
"""


@pytest.fixture
def recorder(tmp_path: Path) -> subprocess.Popen[str]:
    path = tmp_path / "a.lun"
    process = subprocess.Popen([sys.executable, "-c", _RECORDER, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.slow
def test_a_live_recording_is_not_overwritten_and_a_killed_one_is(
    tmp_path: Path, recorder: subprocess.Popen[str]
) -> None:
    path = tmp_path / "a.lun"
    identity = path.stat().st_ino
    try:
        for _ in range(2):
            with pytest.raises(RefusedError, match="another process records to it"):
                SessionWriter(path, overwrite=True)
        assert path.stat().st_ino == identity
        with SessionReader(path) as reader:
            assert len(reader) == 1
        assert is_recording(path)
    finally:
        recorder.send_signal(signal.SIGKILL)
        recorder.communicate()
    assert not is_recording(path)
    with SessionWriter(path, overwrite=True) as writer:
        writer.write(Machine().sample())
        assert is_recording(path)
        # Another descriptor that is closed takes no lock of ours away.
        path.read_bytes()
        assert is_recording(path)
    assert not is_recording(path)


def test_the_lock_is_out_of_the_way_of_sqlite(tmp_path: Path) -> None:
    with SessionWriter(tmp_path / "a.lun") as writer:
        writer.write(Machine().sample())
        connection = sqlite3.connect(tmp_path / "a.lun")
        assert connection.execute("SELECT count(*) FROM ticks").fetchall() == [(1,)]
        connection.close()
        writer.write(Machine().sample())
    assert list(tmp_path.iterdir()) == [tmp_path / "a.lun"]


def test_a_name_too_long_for_its_log_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a name of 255 bytes: give one of at most 247"):
        SessionWriter(tmp_path / ("a" * 255))
    assert not list(tmp_path.iterdir())
    SessionWriter(tmp_path / ("a" * 247)).close()
