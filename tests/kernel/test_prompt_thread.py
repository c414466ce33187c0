"""Priority of the threads of the screens, and of the load and the commands that they start, in the kernel."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from bench.terminal import Terminal
from engine.config import SCRATCH_ENV
from tests import needs
from tui.process.prompt_thread import NICE

_IS_ORDINARY = os.getpriority(os.PRIO_PROCESS, 0) == 0 and os.sched_getscheduler(0) == os.SCHED_OTHER
pytestmark = pytest.mark.skipif(not _IS_ORDINARY, reason="needs the ordinary priority: the tests run at another one")
PATIENCE_S = 60.0
Watch = Callable[..., Terminal]
_ASKED = (
    "import os, subprocess, sys; from tui.process.prompt_thread import respond_promptly; respond_promptly();"
    "print(os.getpriority(os.PRIO_PROCESS, 0), subprocess.check_output(['nice'], text=True))"
)


def _nice_by_thread(pid: int) -> dict[str, set[int]]:
    """Nice values by name of thread; the first thread is `main` (proc_pid_stat(5), field 19)."""
    found: dict[str, set[int]] = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):
            name = "main" if task.name == str(pid) else (task / "comm").read_text().strip()
            found.setdefault(name, set()).add(int((task / "stat").read_text().rpartition(")")[2].split()[16]))
    return found


_REFUSED = subprocess.run(["nice", "-n", str(NICE), "true"], capture_output=True, text=True, check=False).stderr
may_raise = pytest.mark.skipif(bool(_REFUSED), reason=f"needs the right to raise priorities: {_REFUSED.strip()}")


@pytest.fixture
def on_screen(tmp_path: Path) -> Iterator[Watch]:
    started: list[Terminal] = []

    def start(*command: str) -> Terminal:
        words = [*command, sys.executable, "-m", "tui", "run", "--size", "4m", "--rate", "50"]
        terminal = Terminal(words, environment={SCRATCH_ENV: str(tmp_path / "scratch")})
        started.append(terminal)
        assert terminal.drain(PATIENCE_S, until=b"RUNNING") is not None
        return terminal

    yield start
    for each in started:
        each.close()


@may_raise
@needs.io_uring
def test_the_screens_come_first_and_the_load_is_as_any_other(on_screen: Watch) -> None:
    found = _nice_by_thread(on_screen().worker)
    assert found["main"] == {NICE}
    assert found["load"] == {0}


@needs.io_uring
def test_the_priority_that_somebody_chose_is_kept(on_screen: Watch) -> None:
    found = _nice_by_thread(on_screen("nice", "-n", "5").worker)
    assert found["main"] == found["load"] == {5}


@may_raise
def test_commands_of_the_screens_are_as_any_other() -> None:
    done = subprocess.run([sys.executable, "-c", _ASKED], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == [str(NICE), "0"]


def test_without_the_right_nothing_changes() -> None:
    script = (
        _ASKED.replace("respond_promptly();", "os.setresuid(65534, 65534, 65534); respond_promptly();", 1)
        if os.geteuid() == 0
        else _ASKED
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout.split()) == (0, ["0", "0"]), done.stderr
