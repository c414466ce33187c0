"""What nobody foresaw: one line, and a file with the details that only its owner reads."""

from __future__ import annotations

import errno
import resource
import stat
import threading
from pathlib import Path

import pytest

import tui.commands.doctor
from tui.cli import run_cli
from tui.process.crash import FILES_KEPT, crash_line, report_threads


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "lunscope/crashes"


def _raise(error: BaseException) -> None:
    raise error


class Panic(BaseException):
    """As the native core raises one."""


@pytest.mark.parametrize("error", [ValueError("odd \x1b[31m"), RecursionError(), Panic("at the disco")])
def test_an_unforeseen_error_is_one_line_and_a_private_file(
    error: BaseException, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tui.commands.doctor, "examine", lambda *_: _raise(error))
    assert run_cli(["doctor"]) == 1
    said = capsys.readouterr()
    (path,) = folder.iterdir()
    assert said.out == ""
    assert said.err.startswith(f"lunscope: unexpected error: {type(error).__name__}")
    assert str(path) in said.err
    assert said.err.count("\n") == 1
    assert "\x1b" not in said.err
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text()
    assert "Traceback" in text
    assert "test_crash.py" in text
    assert "\x1b" not in text


def test_the_files_are_bounded_in_number(folder: Path) -> None:
    for number in range(FILES_KEPT + 5):
        crash_line(ValueError(number))
    assert len(list(folder.iterdir())) == FILES_KEPT


def test_where_no_file_can_be_made_the_line_remains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lunscope").write_text("in the way")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    line = crash_line(ValueError("odd"))
    assert line.startswith("unexpected error: ValueError: odd (details cannot be kept")
    assert "\n" not in line


def test_an_error_as_long_as_a_book_stays_a_line(folder: Path) -> None:
    assert len(crash_line(ValueError("x" * 10**6))) < 2000
    (path,) = folder.iterdir()
    assert path.stat().st_size < 300_000


def test_a_thread_that_fails_prints_no_traceback(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    monkeypatch.setattr("sys.unraisablehook", None)
    report_threads()
    thread = threading.Thread(target=lambda: _raise(KeyError("lost")))
    thread.start()
    thread.join()
    said = capsys.readouterr().err
    assert said.startswith("lunscope: unexpected error: KeyError: 'lost'; details in ")
    assert said.count("\n") == 1


@pytest.mark.slow
def test_a_key_of_a_megabyte_gives_a_short_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = tmp_path / "a.toml"
    job.write_text("k" * 1_000_000 + " = 1\n")
    assert run_cli(["run", str(job)]) == 2
    said = capsys.readouterr().err
    assert "unknown key" not in said[:200]
    assert "known are target" in said
    assert len(said) < 1500
    assert run_cli(["v" * 100_000]) == 2
    assert len(capsys.readouterr().err) < 1500


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (MemoryError(), "no memory is left: "),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "no memory is left: "),
        (RuntimeError("can't start new thread"), "no thread can be started: "),
        (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), "no process or thread can be started: "),
    ],
)
def test_what_the_environment_lacks_is_named_with_its_limits(
    error: BaseException, says: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    limits = {resource.RLIMIT_NPROC: (3, 3), resource.RLIMIT_AS: (400_000 << 10, 400_000 << 10)}
    monkeypatch.setattr(resource, "getrlimit", lambda which: limits.get(which, (resource.RLIM_INFINITY,) * 2))
    monkeypatch.setattr(tui.commands.doctor, "examine", lambda *_: _raise(error))
    assert run_cli(["doctor"]) == 1
    said = capsys.readouterr()
    fix = "raise what is too low, or memory.max and pids.max of the control group"
    assert (said.out, said.err) == ("", f"lunscope: {says}ulimit -u is 3, ulimit -v is 400000 KiB: {fix}\n")
    assert not folder.exists()
