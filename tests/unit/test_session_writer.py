"""Making, overwriting and losing session files."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from collectors.session.reader import SessionReader
from collectors.session.writer import SessionWriter
from engine.errors import LunscopeError, RefusedError, UsageError
from tests.session_samples import Machine, assert_same, note


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_recording_is_private_from_the_start_and_one_file_in_the_end(tmp_path: Path) -> None:
    path, machine = tmp_path / "a.lun", Machine()
    old = os.umask(0)
    try:
        writer = SessionWriter(path)
        writer.write(machine.sample())
        assert {file.name: _mode(file) for file in tmp_path.iterdir()} == {
            "a.lun": 0o600,
            "a.lun-wal": 0o600,
            "a.lun-shm": 0o600,
        }
        writer.close()
        writer.close()
    finally:
        os.umask(old)
    assert [file.name for file in tmp_path.iterdir()] == ["a.lun"]
    assert _mode(path) == 0o600


def test_an_existing_file_is_kept_without_overwrite(tmp_path: Path) -> None:
    path, machine = tmp_path / "a.lun", Machine()
    with SessionWriter(path) as writer:
        writer.write(machine.sample())
    with pytest.raises(UsageError, match=r"a\.lun: exists"):
        SessionWriter(path)
    second = machine.sample()
    with SessionWriter(path, overwrite=True) as writer:
        writer.write(second)
    with SessionReader(path) as reader:
        assert len(reader) == 1
        assert_same(reader.sample_at(0), second)


@pytest.mark.parametrize("content", [b"precious text", b"SQLite format 3\0" + bytes(2000)])
def test_what_is_no_session_is_never_overwritten(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "precious"
    path.write_bytes(content)
    with pytest.raises(RefusedError, match="not overwritten"):
        SessionWriter(path, overwrite=True)
    assert path.read_bytes() == content
    link = tmp_path / "link"
    link.symlink_to(path)
    for overwrite in (False, True):
        with pytest.raises(LunscopeError):
            SessionWriter(link, overwrite=overwrite)
    assert path.read_bytes() == content
    with pytest.raises(RefusedError, match="not a regular file"):
        SessionWriter(tmp_path, overwrite=True)


def test_companions_of_another_recording_are_not_taken_over(tmp_path: Path) -> None:
    (tmp_path / "a.lun-wal").write_bytes(b"x")
    with pytest.raises(RefusedError, match=r"a\.lun-wal"):
        SessionWriter(tmp_path / "a.lun")
    assert not (tmp_path / "a.lun").exists()


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_vanishes_ends_the_recording(tmp_path: Path, replaced: bool) -> None:
    path, machine = tmp_path / "a.lun", Machine()
    writer = SessionWriter(path)
    writer.write(machine.sample())
    path.unlink()
    if replaced:
        path.write_bytes(b"another")
    for _ in range(2):
        with pytest.raises(LunscopeError, match="removed"):
            writer.write(machine.sample())
    writer.close()
    assert writer.ticks == 1
    assert not replaced or path.read_bytes() == b"another"


def test_a_closed_recording_takes_nothing(tmp_path: Path) -> None:
    writer = SessionWriter(tmp_path / "a.lun")
    writer.write(Machine().sample())
    writer.close()
    with pytest.raises(LunscopeError, match="closed"):
        writer.write(Machine().sample())
    with pytest.raises(LunscopeError, match="closed"):
        writer.add_event(note("late"))


def test_size_and_ticks_are_reported(tmp_path: Path) -> None:
    with SessionWriter(tmp_path / "a.lun") as writer:
        for _ in range(3):
            writer.write(Machine().sample())
        assert writer.ticks == 3
        assert writer.size_bytes >= 4096


def test_a_link_of_somebody_else_in_a_folder_for_all_is_not_followed(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: only root can make a link of another user")
    shared, mine = tmp_path / "shared", tmp_path / "mine"
    shared.mkdir()
    mine.mkdir()
    shared.chmod(0o1777)
    (shared / "trap").symlink_to(mine)
    os.lchown(shared / "trap", 12345, 12345)
    with pytest.raises(RefusedError, match="link made by another user"):
        SessionWriter(shared / "trap" / "a.lun")
    assert not list(mine.iterdir())
    os.lchown(shared / "trap", 0, 0)
    SessionWriter(shared / "trap" / "a.lun").close()
