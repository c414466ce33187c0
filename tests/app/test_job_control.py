"""The screens under a shell: Ctrl-Z and fg, output that leads elsewhere, and nothing left for the shell to read."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.terminal import Terminal
from collectors.session.reader import SessionReader
from engine.events import EventKind
from tests import needs

pytestmark = pytest.mark.slow

LUNSCOPE = f"{shlex.quote(sys.executable)} -m tui"
PATIENCE_S = 40.0
STOPPED_S = 4.0
ASKS, LAST_ASKS = b"\x1b[6n", b"\x1b[5n"
ANSWERS = {ASKS: "\x1b[?2026;2$y\x1b[24;1R", LAST_ASKS: "\x1b[0n"}
BLOCKED = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGWINCH})
os.execv(sys.argv[1], sys.argv[1:])
"""
READ_ALL = """
import os, select, sys, termios, tty
modes = termios.tcgetattr(0)
tty.setcbreak(0)
seen = b""
while select.select([0], [], [], 1.0)[0]:
    seen += os.read(0, 4096)
termios.tcsetattr(0, termios.TCSANOW, modes)
print("LEFT:" + repr(seen) + ":")
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "LUNSCOPE_SCRATCH_DIR", "SSH_CONNECTION", "TMUX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


class Tmux:
    """A shell in a terminal that can be looked at."""

    def __init__(self, folder: Path) -> None:
        self._socket = str(folder / "tmux.sock")
        self("-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "30", "bash --norc --noprofile -i")

    def __call__(self, *arguments: str) -> str:
        command = ["tmux", "-S", self._socket, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout

    def type(self, *keys: str) -> None:
        self("send-keys", *keys)

    def run(self, command: str) -> None:
        self("send-keys", "-l", command)
        self("send-keys", "Enter")

    def picture(self) -> str:
        return self("capture-pane", "-p")

    def until(self, condition: Callable[[str], object]) -> str:
        deadline_s = time.monotonic() + PATIENCE_S
        while not condition(picture := self.picture()):
            assert time.monotonic() < deadline_s, picture
            time.sleep(0.1)
        return picture

    def in_alternate_screen(self) -> bool:
        return self("display-message", "-p", "#{alternate_on}").strip() == "1"


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    made = Tmux(tmp_path)
    yield made
    made("kill-server")


@needs.tmux
@needs.io_uring
def test_ctrl_z_gives_the_shell_its_terminal_and_fg_the_screens_theirs(tmux: Tmux, tmp_path: Path) -> None:
    recording = tmp_path / "a.luns"
    tmux.run(f"cd {Path.cwd()}; {LUNSCOPE} run --rate 300 --size 4m --interval 0.3 --record {recording}")
    tmux.until(lambda seen: "RUNNING" in seen)
    time.sleep(2)
    tmux.type("C-z")
    tmux.until(lambda seen: "Stopped" in seen)
    assert not tmux.in_alternate_screen()
    tmux.run("echo $((6*7))wWrRtT; stty -a | grep -q -w -e -icanon -e -echo -e -isig || echo cooked")
    tmux.until(lambda seen: "\n42wWrRtT\ncooked\n" in seen)
    time.sleep(STOPPED_S)
    tmux.run("fg")
    tmux.until(lambda seen: "RUNNING" in seen and "Stopped" not in seen)
    assert tmux.in_alternate_screen()
    tmux.type("3")
    tmux.until(lambda seen: "suspended for" in seen)
    time.sleep(2)
    tmux.type("q")
    tmux.until(lambda _: not tmux.in_alternate_screen())
    tmux.run("echo over $((1+1))")
    tmux.until(lambda seen: "over 2" in seen)
    with SessionReader(recording) as reader:
        events = reader.events()
        assert reader.complete
    assert [event for event in events if event.kind is EventKind.KNOB] == [], "what was typed to the shell turned knobs"
    (stop,) = [event for event in events if "suspended for" in event.text]
    assert float(stop.data["suspended_s"] or 0) >= STOPPED_S


@needs.tmux
@pytest.mark.parametrize(
    ("verb", "ready"),
    [("watch", "Help"), pytest.param("run --rate 300 --size 4m", "RUNNING", marks=needs.io_uring)],
    ids=["watch", "run"],
)
def test_bg_stops_again_and_a_stopped_one_can_be_killed(tmux: Tmux, verb: str, ready: str) -> None:
    tmux.run(f"cd {Path.cwd()}; {LUNSCOPE} {verb}")
    tmux.until(lambda seen: ready in seen)
    tmux.type("C-z")
    tmux.until(lambda seen: "Stopped" in seen)
    tmux.run("clear; bg; sleep 1; jobs")
    tmux.until(lambda seen: "Stopped" in seen)
    assert not tmux.in_alternate_screen()
    # Not `wait %1`: that returns 148 as long as the shell has not seen that the job goes on.
    tmux.run("clear; pid=$(jobs -p); kill %1; while kill -0 $pid 2>&-; do sleep 0.1; done")
    tmux.until(lambda seen: "Exit 143" in seen)


@needs.tmux
def test_a_window_closed_while_it_is_suspended(tmux: Tmux, tmp_path: Path) -> None:
    tmux.run(f"cd {Path.cwd()}; {LUNSCOPE} watch --interval 0.3 --record {tmp_path}/a.luns")
    tmux.until(lambda seen: "REC" in seen)
    tmux.type("C-z")
    tmux.until(lambda seen: "Stopped" in seen)
    tmux("respawn-pane", "-k", "sleep 60")
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        with SessionReader(tmp_path / "a.luns") as reader:
            if reader.complete:
                return
        assert time.monotonic() < deadline_s
        time.sleep(0.1)


def under_shell(command: str) -> Terminal:
    return Terminal(["/bin/sh", "-c", command], 100, 30)


def redrawn_after_a_resize(terminal: Terminal) -> None:
    assert terminal.drain(PATIENCE_S, until=b"Help"), terminal.output
    terminal.resize(60, 20)
    terminal.output.clear()
    assert terminal.drain(PATIENCE_S, until=b"Help")
    terminal.press("q")
    terminal.wait(PATIENCE_S)
    assert terminal.close() == 0


@pytest.mark.parametrize("redirection", ["2>", ">"])
def test_it_draws_on_the_terminal_wherever_output_leads(redirection: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    terminal = under_shell(f"exec {LUNSCOPE} watch {redirection}{log}")
    redrawn_after_a_resize(terminal)
    assert log.read_bytes() == b""


def test_resizes_are_seen_where_the_parent_blocks_their_signal() -> None:
    terminal = Terminal(
        [sys.executable, "-c", BLOCKED, sys.executable, "-m", "tui", "watch", "--tier", "kernel"], 100, 30
    )
    redrawn_after_a_resize(terminal)


@pytest.mark.parametrize("answer_after_s", [0.0, 0.15])
def test_a_quick_end_leaves_nothing_to_the_shell(answer_after_s: float, tmp_path: Path) -> None:
    reader = tmp_path / "read_all.py"
    reader.write_text(READ_ALL)
    terminal = under_shell(f"{LUNSCOPE} watch; {shlex.quote(sys.executable)} {reader}")
    assert terminal.drain(PATIENCE_S, until=ASKS)
    terminal.press("q")
    asked = dict.fromkeys(ANSWERS, 0)
    deadline_s = time.monotonic() + PATIENCE_S
    while b"LEFT:" not in terminal.output and time.monotonic() < deadline_s:
        for question, answer in ANSWERS.items():
            if terminal.output.count(question) > asked[question]:
                time.sleep(answer_after_s)
                terminal.press(answer)
                asked[question] += 1
        terminal.drain(0.02)
    terminal.drain(1)
    left = bytes(terminal.output).partition(b"LEFT:")[2].partition(b":")[0]
    terminal.close()
    assert left == b"b''"
    assert asked == {ASKS: 1, LAST_ASKS: 1}


def test_what_a_terminal_cannot_answer_costs_no_time_at_the_end(tmp_path: Path) -> None:
    terminal = under_shell(f"exec {LUNSCOPE} watch")
    assert terminal.drain(PATIENCE_S, until=b"Help")
    terminal.drain(2.5)
    terminal.output.clear()
    terminal.press("q")
    terminal.wait(PATIENCE_S)
    assert terminal.close() == 0
    assert LAST_ASKS not in terminal.output


SPAWNING = """
import subprocess, sys, threading
from tui.terminal.job_control import keep_threads_stoppable
keep_threads_stoppable()
def spawn():
    while True:
        subprocess.run(["true"])
threading.Thread(target=spawn, daemon=True).start()
print("spawning", flush=True)
sys.stdin.read()
"""


def test_a_stop_while_a_thread_starts_a_command_stops_everything() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SPAWNING],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        process_group=0,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"spawning\n"
        for _ in range(50):
            os.killpg(process.pid, signal.SIGTSTP)
            deadline_s = time.monotonic() + PATIENCE_S
            while os.waitpid(process.pid, os.WUNTRACED | os.WNOHANG) == (0, 0):
                assert time.monotonic() < deadline_s, "it did not stop"
                time.sleep(0.001)
            os.killpg(process.pid, signal.SIGCONT)
            time.sleep(0.002)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
