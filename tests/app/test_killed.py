"""The process of the screens is killed: its parent restores the terminal, says what happened, and ends the same way."""

from __future__ import annotations

import os
import signal
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.terminal import Terminal

pytestmark = pytest.mark.slow

RECORDING = Path(__file__).parents[1] / "recordings" / "multipath.luns"
LUNSCOPE = (sys.executable, "-m", "tui")
SCREENS = b"\x1b[?1049h"
SHELL = b"\x1b[?1049l"
PATIENCE_S = 30.0
ECHO = termios.ECHO | termios.ICANON | termios.ISIG


@pytest.fixture
def terminal(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """A terminal on which the screens of a verb are shown."""
    monkeypatch.setenv("HOME", str(tmp_path))
    terminal = Terminal((*LUNSCOPE, *request.param), 100, 30, environment={"TERM": "xterm-256color"})
    try:
        assert terminal.drain(PATIENCE_S, until=b"Events"), terminal.output.decode(errors="replace")
        yield terminal
    finally:
        terminal.close(1)


def echoes(terminal: Terminal) -> bool:
    """Whether the terminal is as a shell needs it."""
    return bool(termios.tcgetattr(terminal._descriptor)[3] & ECHO == ECHO)


@pytest.mark.parametrize("terminal", [("watch",), ("replay", str(RECORDING))], ids=["watch", "replay"], indirect=True)
@pytest.mark.parametrize(
    ("number", "words"), [(signal.SIGKILL, b"its process was killed"), (signal.SIGBUS, b"(Bus error): please report")]
)
def test_the_terminal_is_restored(terminal: Terminal, number: signal.Signals, words: bytes) -> None:
    assert SCREENS in terminal.output
    assert not echoes(terminal)
    assert terminal.worker != terminal.pid
    os.kill(terminal.worker, number)
    deadline_s = time.monotonic() + PATIENCE_S
    while terminal.alive() and time.monotonic() < deadline_s:
        terminal.drain(0.1)
    terminal.drain(0.1)
    last = bytes(terminal.output).rpartition(SHELL)
    assert last[1]
    assert words in last[2]
    assert SCREENS not in last[2]
    assert echoes(terminal)
    assert terminal.close() == -number


def test_without_screens_only_the_words_are_printed(tmp_path: Path) -> None:
    command = (*LUNSCOPE, "run", "--headless", "--size=4m", "--target", str(tmp_path / "scratch"), "--runtime=60s")
    terminal = Terminal(command, 100, 30, environment={"HOME": str(tmp_path)})
    try:
        deadline_s = time.monotonic() + PATIENCE_S
        while terminal.worker == terminal.pid and time.monotonic() < deadline_s:
            terminal.drain(0.1)
        assert terminal.worker != terminal.pid
        os.kill(terminal.worker, signal.SIGKILL)
        terminal.wait(PATIENCE_S)
        terminal.drain(0.1)
        assert b"its process was killed" in terminal.output
        assert b"\x1b" not in terminal.output
        assert terminal.close() == -signal.SIGKILL
    finally:
        terminal.close(1)
