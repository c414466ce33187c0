"""`lunscope verify` of what does not answer: it says what it waits for, and ends at the limit or at a signal."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import needs
from tests.kernel.stalling import under_silent_mount
from tests.kernel.throttle import slowed, throttle

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60.0
UNSAMPLED = """
import sys
from engine.guard import facts
from tui.cli import run_cli
facts.sampled = lambda *_: []
sys.exit(run_cli())
"""
"""The command line without the samples that tell whether a target was written: 64 reads at its opening."""
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
@pytest.mark.parametrize("number", [None, signal.SIGTERM], ids=["limit", "SIGTERM"])
def test_reads_that_hang_are_given_up(
    make_loop: Callable[..., str], start: Start, number: signal.Signals | None
) -> None:
    path = make_loop(4 << 20)
    options = ("--verify", "--rw", "write", "--runtime", "500ms", "--allow-write", path, "--destroy-data")
    run = start(sys.executable, "-m", "tui", "run", "--headless", "--target", path, *options)
    assert run.communicate(timeout=PATIENCE_S)[1] == ""
    with slowed(path, 1):
        process = start(
            sys.executable, "-c", UNSAMPLED, "verify", path, "--give-up", "2500ms" if number is None else "10m"
        )
        # The guard reads as well before the check does.
        while " I/O" not in (line := line_of(process)):
            assert "open" in line, line
        assert f" on {path}, oldest for " in line, line
        if number is not None:
            process.send_signal(number)
        _, error = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == (1 if number is None else 128 + number)
    assert "of it was checked" in error
