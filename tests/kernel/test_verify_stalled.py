"""`lunscope verify` of what does not answer: it says what it waits for, and ends at the limit or at a signal."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import needs
from tests.kernel.stalling import under_silent_mount
from tests.kernel.throttle import slowed, throttle

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60.0
ENDING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a command with its output in pipes; whatever the test does, it is ended."""
    started: list[subprocess.Popen[str]] = []

    def start(*command: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait(PATIENCE_S)


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    return process.stderr.readline()


def opening(start: Start, folder: Path, *options: str) -> subprocess.Popen[str]:
    """Check what cannot be opened, and wait until that is said."""
    process = start(*under_silent_mount(folder, "-m", "tui", "verify", folder / "data", *options))
    line = line_of(process)
    assert line.startswith(f"lunscope: waiting for open of {folder / 'data'}, oldest for "), line
    assert float(line.split()[-2]) < 2.0 + 1.0, "a second is for the machine"
    return process


@needs.fuse
@pytest.mark.parametrize("number", ENDING, ids=lambda number: number.name)
def test_an_open_that_hangs_is_named_and_a_signal_ends_it(tmp_path: Path, start: Start, number: signal.Signals) -> None:
    process = opening(start, tmp_path / "silent")
    process.send_signal(number)
    out, error = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + number
    assert error.splitlines()[-1].endswith("/data never came back: not all of it was checked")
    assert out == ""


@needs.fuse
def test_an_open_that_hangs_is_given_up_at_the_limit(tmp_path: Path, start: Start) -> None:
    process = opening(start, tmp_path / "silent", "--give-up", "3s")
    _, error = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert error.splitlines()[-1].endswith("/data never came back: not all of it was checked")


@throttle
@needs.loop
@pytest.mark.parametrize("number", [None, signal.SIGTERM])
def test_reads_that_hang_are_given_up(
    make_loop: Callable[..., str], start: Start, number: signal.Signals | None
) -> None:
    path = make_loop(4 << 20)
    command = (sys.executable, "-m", "tui")
    options = ("--verify", "--rw", "write", "--runtime", "500ms", "--allow-write", path, "--destroy-data")
    run = start(*command, "run", "--headless", "--target", path, *options)
    assert run.communicate(timeout=PATIENCE_S)[1] == ""
    with slowed(path, 1):
        process = start(*command, "verify", path, "--give-up", "2s" if number is None else "10m")
        if number is not None:
            # Before there are reads the guard's own look at the device may be what waits.
            while "waiting for open" in (line := line_of(process)) or "returned" in line:
                pass
            assert f" on {path}, oldest for " in line, line
            process.send_signal(number)
        began_s = time.monotonic()
        code = process.wait(PATIENCE_S)
        assert time.monotonic() - began_s < PATIENCE_S
    assert code == (1 if number is None else 128 + number)
