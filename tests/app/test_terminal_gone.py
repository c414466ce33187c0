"""A terminal that reads nothing, or goes away: what was started ends with it, in time, and nothing waits for it."""

from __future__ import annotations

import os
import pty
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from bench.terminal import Terminal
from collectors.session.reader import SessionReader
from engine.errors import LunscopeError
from engine.events import Event, EventKind
from tests import needs
from tests.kernel.forked_command import ForkedTerminal
from tui.terminal import end_watch
from tui.terminal.tty import Tty

pytestmark = pytest.mark.slow

LUNSCOPE = (sys.executable, "-m", "tui")
GONE_S = 6.0
"""Ends within 2 s are what `make soak` asks for, on a machine that does nothing else."""
PATIENCE_S = 30.0
DEAF_S = 12.0
TURNS = 6
"""How often a knob is turned meanwhile."""
FREEZING = """
import sys, time
import tui.app.app
from tui.main import main
tui.app.app.LunscopeApp.paint = lambda self: (print("FROZEN", file=sys.__stdout__, flush=True), time.sleep(3600))
main()
"""


def start(terminals: list[Terminal], words: tuple[str, ...], until: bytes, term: str = "xterm-256color") -> Terminal:
    return shows(terminals, ForkedTerminal(words, 100, 30, environment={"TERM": term}), until)


def shows(terminals: list[Terminal], terminal: Terminal, until: bytes) -> Terminal:
    terminals.append(terminal)
    assert terminal.drain(PATIENCE_S, until=until), terminal.output.decode(errors="replace")
    return terminal


def loaded(recording: Path, *options: str) -> tuple[str, ...]:
    return ("run", "--rate=500", "--size=4m", "--interval=0.2", f"--record={recording}", *options)


def samples(recording: Path) -> int:
    try:
        with SessionReader(recording) as reader:
            return len(reader)
    except LunscopeError:
        return 0


def recorded(terminal: Terminal, recording: Path) -> Terminal:
    """Wait until the recording holds something; an empty one cannot be read."""
    deadline_s = time.monotonic() + PATIENCE_S
    while samples(recording) < 2:
        assert time.monotonic() < deadline_s, "nothing is recorded"
        terminal.drain(0.1)
    return terminal


def assert_gone(terminal: Terminal) -> None:
    seconds = terminal.gone_after_s(5 * GONE_S)
    assert seconds is not None, "it lives on without its terminal"
    assert seconds <= GONE_S
    assert terminal.close() == 128 + signal.SIGHUP


def assert_complete(recording: Path) -> None:
    with SessionReader(recording) as reader:
        assert reader.complete
        assert reader.notice == ""
        ends = [event.text for event in reader.events() if event.kind is EventKind.LOAD]
    assert any("load stopped" in text for text in ends)


@needs.io_uring
@pytest.mark.parametrize("term", ["xterm-256color", "dumb"])
def test_a_closed_terminal_ends_load_and_recording(term: str, terminals: list[Terminal], tmp_path: Path) -> None:
    recording = tmp_path / "a.luns"
    terminal = recorded(start(terminals, loaded(recording), b"RUNNING", term), recording)
    terminal.hang_up()
    assert_gone(terminal)
    assert_complete(recording)


@needs.io_uring
def test_sighup_ends_load_and_recording(terminals: list[Terminal], tmp_path: Path) -> None:
    recording = tmp_path / "a.luns"
    terminal = recorded(start(terminals, loaded(recording), b"RUNNING"), recording)
    os.kill(terminal.pid, signal.SIGHUP)
    assert_gone(terminal)
    assert_complete(recording)


@needs.io_uring
@pytest.mark.parametrize(("seed", "term"), enumerate(["xterm-256color", "foo-unknown", "linux"]))
def test_a_terminal_closed_in_a_storm_of_resizes_and_keys(
    seed: int, term: str, terminals: list[Terminal], tmp_path: Path
) -> None:
    recording = tmp_path / "a.luns"
    terminal = recorded(start(terminals, loaded(recording), b"RUNNING", term), recording)
    chance = random.Random(seed)
    for _ in range(60):
        terminal.resize(chance.randint(10, 220), chance.randint(3, 60))
        terminal.press(chance.choice("1234567z?\x1b"))
        terminal.drain(0.01)
    terminal.hang_up()
    assert_gone(terminal)
    assert_complete(recording)


@needs.io_uring
def test_a_terminal_that_stopped_reading_and_is_closed_then(terminals: list[Terminal], tmp_path: Path) -> None:
    recording = tmp_path / "a.luns"
    terminal = recorded(start(terminals, loaded(recording), b"RUNNING"), recording)
    for key in "1425142514251425":
        terminal.press(key)
        time.sleep(0.1)
    terminal.hang_up()
    assert_gone(terminal)
    assert_complete(recording)


def start_apart(command: tuple[str, ...], until: bytes) -> tuple[subprocess.Popen[bytes], int]:
    """Start on a terminal that is nobody's controlling terminal: the kernel sends no SIGHUP for it."""
    ours, theirs = pty.openpty()
    program = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    deadline_s, seen = time.monotonic() + PATIENCE_S, b""
    while until not in seen:
        assert time.monotonic() < deadline_s, seen
        seen += os.read(ours, 65536)
    return program, ours


@needs.io_uring
def test_the_end_of_input_without_sighup(terminals: list[Terminal], tmp_path: Path) -> None:
    recording = tmp_path / "a.luns"
    program, ours = start_apart((*LUNSCOPE, *loaded(recording)), b"RUNNING")
    try:
        deadline_s = time.monotonic() + PATIENCE_S
        while samples(recording) < 2 and time.monotonic() < deadline_s:
            os.read(ours, 65536)
        os.close(ours)
        assert program.wait(GONE_S) == 128 + signal.SIGHUP
    finally:
        program.kill()
    assert_complete(recording)


def test_what_is_closed_already_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(end_watch, "GONE_S", 3600.0)
    ended = threading.Event()
    monkeypatch.setattr(end_watch.EndWatch, "_end_process", lambda _watch: ended.set())
    master, slave = pty.openpty()
    closed: list[str] = []
    with Tty(slave) as tty, end_watch.EndWatch(tty, [lambda: closed.append("load")]) as watch:
        watch.run_under(lambda _code: None)  # The main thread does not follow.
        os.close(master)
        assert ended.wait(PATIENCE_S)
    assert closed == ["load"]


def test_the_signal_that_ended_the_screens_may_arrive_again_forwarded(monkeypatch: pytest.MonkeyPatch) -> None:
    later: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: later.append(number))
    asked = threading.Event()
    _, slave = pty.openpty()
    try:
        with Tty(slave) as tty, end_watch.EndWatch(tty, []) as watch:
            watch.run_under(lambda _code: asked.set())
            signal.raise_signal(signal.SIGTERM)
            assert asked.wait(PATIENCE_S)
            monkeypatch.setattr(end_watch, "SAME_S", 3600.0)
        signal.raise_signal(signal.SIGTERM)
        assert later == []
        monkeypatch.setattr(end_watch, "SAME_S", 0.0)
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        assert later == [signal.SIGTERM] * 2
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("sighup", [True, False])
def test_an_event_loop_that_is_stuck(sighup: bool, terminals: list[Terminal], tmp_path: Path) -> None:
    recording = tmp_path / "a.luns"
    script = tmp_path / "freezing.py"
    script.write_text(FREEZING)
    command = (sys.executable, str(script), "watch", "--interval=0.2", f"--record={recording}")
    terminal = recorded(shows(terminals, Terminal(command, 100, 30), b"FROZEN"), recording)
    if sighup:
        os.kill(terminal.pid, signal.SIGHUP)
    else:
        terminal.hang_up()
    assert_gone(terminal)
    with SessionReader(recording) as reader:
        assert reader.complete


def knob_turns(recording: Path) -> list[Event]:
    with SessionReader(recording) as reader:
        return [event for event in reader.events() if event.kind is EventKind.KNOB]


@pytest.mark.waits
@needs.io_uring
def test_a_terminal_that_reads_nothing_holds_nothing_up(terminals: list[Terminal], tmp_path: Path) -> None:
    recording = tmp_path / "a.luns"
    terminal = recorded(start(terminals, loaded(recording, "--interval=0.4"), b"RUNNING"), recording)
    for key in "142514251425142":  # Each draws a whole screen: far more than a terminal holds that nobody reads.
        terminal.press(key)
        time.sleep(0.2)
    started_s = time.monotonic()
    while (passed_s := time.monotonic() - started_s) < DEAF_S:
        before = len(knob_turns(recording)), samples(recording)
        terminal.press("+")
        deadline_s = time.monotonic() + 25
        while (len(knob_turns(recording)) <= before[0] or samples(recording) <= before[1]) and passed_s < DEAF_S:
            assert time.monotonic() < deadline_s, f"stuck after {passed_s:.0f} s of a terminal that reads nothing"
            time.sleep(0.2)
        time.sleep(DEAF_S / TURNS)
    with SessionReader(recording) as reader:
        steps = list(reader.steps(reader.first, len(reader) - 1))
    ios = [int(step.current.tables["load"].column("read_ios").sum()) for step in steps if "load" in step.current.tables]
    assert ios[-1] - ios[len(ios) // 2] > 0.3 * 500 * DEAF_S / 2
    terminal.output.clear()
    # The title of the knob is shorter where there is little room.
    assert terminal.drain(10, until=b"epth"), "the picture did not come back when the terminal read again"
    os.kill(terminal.pid, signal.SIGTERM)
    terminal.wait(10)
    assert terminal.close() == 128 + signal.SIGTERM
    assert_complete(recording)


@needs.io_uring
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_though_the_terminal_reads_nothing(
    number: int, terminals: list[Terminal], tmp_path: Path
) -> None:
    """Its summary is not waited for either."""
    terminal = start(terminals, loaded(tmp_path / "a.luns"), b"RUNNING")
    for key in "142514251425142":
        terminal.press(key)
        time.sleep(0.2)
    os.kill(terminal.pid, number)
    assert terminal.gone_after_s(PATIENCE_S) is not None
    assert terminal.close() == 128 + number
