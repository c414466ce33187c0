"""`lunscope sweep` on a terminal: it measures a real device, its keys work, and leaving prints the answer."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.terminal import Terminal
from collectors.session.reader import SessionReader
from engine.config import SCRATCH_ENV
from tests.kernel.forked_command import ForkedTerminal
from tests.recorded import recorded_rates, recorded_sweep

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
LEAVE_SCREEN = b"\x1b[?1049l"
PATIENCE_S = 120.0
CALM = "--rate=500"
"""I/Os per second that leave the host to others: nothing here is about how fast a load is."""


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, terminals: list[Terminal], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SCRATCH_ENV, str(tmp_path / "scratch"))
    monkeypatch.chdir(ROOT)


def _start(terminals: list[Terminal], *arguments: str, tier: str = "kernel") -> Terminal:
    terminal = ForkedTerminal(("sweep", f"--tier={tier}", *arguments), 80, 24)
    terminals.append(terminal)
    return terminal


def _shows(terminal: Terminal, words: str) -> None:
    """Wait until these words were drawn; nothing on the way waits for a clock."""
    if words.encode() not in terminal.output:
        found = terminal.drain(PATIENCE_S, until=words.encode())
        assert found or words.encode() in terminal.output, terminal.output[-4000:].decode(errors="replace")


def _wait_for(terminal: Terminal, condition: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, terminal.output[-4000:].decode(errors="replace")
        terminal.drain(0.1)


def _trials(path: Path) -> list[dict[str, object]]:
    """Measurements in a file, without the lines of head and host."""
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines if line.startswith('{"curve"')]


def _left(terminal: Terminal) -> tuple[str, int]:
    """What was printed after the terminal was given back, and the exit code."""
    terminal.press("q")
    _wait_for(terminal, lambda: not terminal.alive())
    terminal.drain(1.0)
    return terminal.output.rpartition(LEAVE_SCREEN)[2].decode(), terminal.close()


def _sweep(terminals: list[Terminal], tmp_path: Path, *arguments: str, tier: str) -> None:
    """Measure two points, set the first on end, stop, and leave."""
    trials, recording = tmp_path / "trials", tmp_path / "a.luns"
    axes = ("--vary", "qd=1,2,4,8", "--interval=0.2", CALM)
    terminal = _start(terminals, *axes, f"--trials={trials}", f"--record={recording}", *arguments, tier=tier)
    _shows(terminal, "measured")
    _wait_for(terminal, lambda: len(_trials(trials)) >= 2)
    terminal.press("\r")
    _shows(terminal, "on end: qd=1")
    terminal.press("x")
    _shows(terminal, "qd=1 set: the load runs with it")
    text, code = _left(terminal)
    assert code == 1, "points are missing"
    assert "unknown: fewer than 4 loads were measured" in text
    assert "not complete: stopped" in text
    measured = _trials(trials)
    for trial in measured:
        assert trial["devices"] is not None, "sampled under the screen as without it"
        iops = trial["iops"]
        assert isinstance(iops, float)
        assert f"{iops:,.0f}" in text
    with SessionReader(recording) as reader:
        sweep = recorded_sweep(reader.events())
        knobs = [event.text for event in reader.events()]
    assert sweep is not None
    assert sweep.ended == "stopped"
    assert [trial.iops for trial in sweep.points.trials[0]] == [trial["iops"] for trial in measured]
    assert any("queue depth" in text and text.endswith("-> 1") for text in knobs)


@pytest.mark.waits
def test_sweep_of_a_scratch_file(terminals: list[Terminal], tmp_path: Path) -> None:
    _sweep(terminals, tmp_path, "--size=4m", tier="kernel")
    assert not list((tmp_path / "scratch").iterdir())


def test_leaving_a_sweep_in_the_middle_prints_what_was_measured(terminals: list[Terminal], tmp_path: Path) -> None:
    trials = tmp_path / "trials"
    terminal = _start(terminals, "--vary", "qd=1..64", CALM, "--size=4m", f"--trials={trials}")
    _wait_for(terminal, lambda: _trials(trials))
    text, code = _left(terminal)
    assert code == 1
    assert "not complete: stopped; " in text
    seen, _, measured = text.replace("\r", "").partition("\n\n")
    assert "watched   " in seen
    assert measured.startswith("[Sweep]\nPoints:\n")


def test_search_for_a_rate_on_the_screen_goes_on_from_its_file(terminals: list[Terminal], tmp_path: Path) -> None:
    trials, recording = tmp_path / "trials", tmp_path / "a.luns"
    goal = "--goal=sum=1s,trial=200ms,first=200ms"
    asked = ("--slo=p90<=900ms", "--vary=rate=50..400", "--size=4m", goal)
    arguments = (*asked, f"--trials={trials}", "--interval=0.2")
    terminal = _start(terminals, *arguments)
    _wait_for(terminal, lambda: _trials(trials))
    os.kill(terminal.worker, signal.SIGKILL)
    _wait_for(terminal, lambda: not terminal.alive())
    before = _trials(trials)
    terminal = _start(terminals, *arguments, f"--record={recording}")
    _shows(terminal, "COMPLETE: ")
    text, code = _left(terminal)
    assert code == 0, text
    assert "p90<=900ms: " in text
    assert _trials(trials)[: len(before)] == before
    with SessionReader(recording) as reader:
        found = recorded_rates(reader.events())
    assert found is not None
    assert found.ended == "complete"
    assert [trial.rate for trial in found.points.trials[0]] == [trial["rate"] for trial in _trials(trials)]
