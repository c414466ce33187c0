"""The Compare screen over a real load whose knobs are turned, and over its recording."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.terminal import Terminal
from collectors.session.reader import SessionReader
from engine.config import SCRATCH_ENV
from engine.events import EventKind
from tests import needs
from tests.kernel.forked_command import ForkedTerminal

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PATIENCE_S = 120.0
EPOCH_TICKS = 130
"""More than the 100 intervals that a verdict needs at any time."""


@pytest.fixture
def terminals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Terminal]]:
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "SSH_CONNECTION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(SCRATCH_ENV, str(tmp_path / "scratch"))
    monkeypatch.chdir(ROOT)
    opened: list[Terminal] = []
    yield opened
    for terminal in opened:
        if terminal.alive():
            os.kill(terminal.pid, signal.SIGKILL)
        terminal.close(1)


def _start(terminals: list[Terminal], *words: object) -> Terminal:
    terminal = ForkedTerminal([*map(str, words)], 120, 40)
    terminals.append(terminal)
    return terminal


def _wait_for(terminal: Terminal, condition: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, terminal.output[-4000:].decode(errors="replace")
        terminal.drain(0.1)


def _shows(terminal: Terminal, words: str) -> None:
    """Wait until these words are drawn from now on."""
    start = len(terminal.output)
    _wait_for(terminal, lambda: words.encode() in terminal.output[start:])


def _ticks(path: Path) -> int:
    """Samples in a recording that is being written."""
    with SessionReader(path) as reader:
        return len(reader)


def _texts(path: Path, kind: EventKind) -> list[str]:
    with SessionReader(path) as reader:
        return [event.text for event in reader.events() if event.kind is kind]


@pytest.mark.waits
@needs.root
@needs.loop
def test_live_epochs_get_a_verdict_and_a_note_is_recorded(
    terminals: list[Terminal], tmp_path: Path, make_loop: Callable[..., str]
) -> None:
    recording = tmp_path / "a.luns"
    load = (f"--target={make_loop(16 << 20)}", "--bs=4k", "--qd=1", "--rate=200", "--tier=kernel")
    terminal = _start(terminals, "run", *load, "--interval=0.1", f"--record={recording}")
    _shows(terminal, "load running")
    first = _ticks(recording)
    _wait_for(terminal, lambda: _ticks(recording) > first + EPOCH_TICKS)
    terminal.press("]")
    _wait_for(terminal, lambda: _texts(recording, EventKind.KNOB))
    terminal.press("C")
    _shows(terminal, "intervals at any time")
    _wait_for(
        terminal,
        lambda: any(f" {word}".encode() in terminal.output for word in ("equivalent", "worse", "better", "differs")),
    )
    terminal.press("A")
    _shows(terminal, "A note at")
    terminal.press("as agreed\r")
    _wait_for(terminal, lambda: "as agreed" in _texts(recording, EventKind.NOTE))
    terminal.press("q")
    _wait_for(terminal, lambda: not terminal.alive())
    assert terminal.close() == 0
    parts = [f"{recording}@epoch{number}" for number in (0, 1)]
    shown = _start(terminals, "compare", *parts, "--screen", "--table=load_total")
    _shows(shown, "epoch0")
    _wait_for(shown, lambda: b"% of A" in shown.output)
    shown.press("q")
    _wait_for(shown, lambda: not shown.alive())
    assert shown.close() == 0
