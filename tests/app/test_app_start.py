"""The screens on a real pseudo-terminal: however they end, the terminal is given back and nothing is left behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from os import kill
from pathlib import Path

import pytest

from bench.terminal import Terminal
from collectors.session.reader import SessionReader
from tests import needs

pytestmark = pytest.mark.slow

ENTER_SCREEN, LEAVE_SCREEN, SHOW_CURSOR = b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?25h"
LUNSCOPE = (sys.executable, "-m", "tui")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own: no settings of whoever runs the tests, scratch files to look for."""
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "LUNSCOPE_SCRATCH_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def open_terminal(terminals: list[Terminal], *arguments: str, until: bytes = b"Help") -> Terminal:
    terminal = Terminal([*LUNSCOPE, *arguments], 80, 24)
    terminals.append(terminal)
    assert terminal.drain(30, until=until), terminal.output.decode(errors="replace")
    assert ENTER_SCREEN in terminal.output
    return terminal


def is_given_back(terminal: Terminal) -> bool:
    return LEAVE_SCREEN in terminal.output and SHOW_CURSOR in terminal.output


def test_q_leaves(terminals: list[Terminal]) -> None:
    terminal = open_terminal(terminals, "watch")
    terminal.press("q")
    terminal.wait(20)
    assert terminal.close() == 0
    terminals.clear()
    assert is_given_back(terminal)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_leaves_and_closes_the_recording(number: int, terminals: list[Terminal], tmp_path: Path) -> None:
    recording = tmp_path / "a.luns"
    terminal = open_terminal(terminals, "watch", "--interval", "0.1", "--record", str(recording), until=b"REC")
    kill(terminal.pid, number)
    terminal.wait(20)
    assert terminal.close() == 128 + number
    terminals.clear()
    assert is_given_back(terminal)
    reader = SessionReader(recording)
    assert reader.complete
    assert reader.notice == ""
    reader.close()


@needs.io_uring
def test_a_signal_stops_the_load_and_removes_scratch(terminals: list[Terminal], home: Path) -> None:
    terminal = open_terminal(terminals, "run", "--size", "1m", "--rate", "500", until=b"RUNNING")
    kill(terminal.pid, signal.SIGTERM)
    terminal.wait(30)
    assert terminal.close() == 128 + signal.SIGTERM
    terminals.clear()
    assert is_given_back(terminal)
    assert [path for path in (home / ".cache").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("arguments", [("watch",), ("replay", "x.luns")])
def test_without_a_terminal_one_line_says_what_to_use(arguments: tuple[str, ...]) -> None:
    ran = subprocess.run([*LUNSCOPE, *arguments], input="", capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert len(ran.stderr.splitlines()) == 1
    assert "no terminal" in ran.stderr
    assert "lunscope re" in ran.stderr


def test_replay_of_nothing_is_one_line(terminals: list[Terminal]) -> None:
    terminal = Terminal([*LUNSCOPE, "replay", "/nonexistent.luns"], 80, 24)
    terminals.append(terminal)
    terminal.wait(20)
    assert terminal.close() == 2
    terminals.clear()
    assert b"/nonexistent.luns" in terminal.output
    assert ENTER_SCREEN not in terminal.output
    assert b"Traceback" not in terminal.output
