"""`lunscope compare` over recordings of real loads, as real processes."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from collectors.session.reader import SessionReader
from engine.config import SCRATCH_ENV
from engine.errors import LunscopeError
from tests.kernel.forked_command import Forked, lunscope

SMALL, LARGE = "4k", "256k"


def _lunscope(folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    done = lunscope(*map(str, words), env=os.environ | {SCRATCH_ENV: str(folder / "scratch")}, timeout_s=300)
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two recordings of one load at a fixed rate, which any disk keeps, and one with blocks of another size.

    All at once: such rates leave each other alone.
    """
    folder = tmp_path_factory.mktemp("compare")
    blocks = {"first": SMALL, "second": SMALL, "large": LARGE}
    for name, process in [(name, _recorded(folder, name, block)) for name, block in blocks.items()]:
        out, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
        (folder / f"{name}.json").write_text(out)
    return folder


def _recorded(folder: Path, name: str, block: str) -> Forked:
    load = ("--bs", block, "--qd", 4, "--size", "16m", "--rate", 200, "--arrival", "constant", "--runtime", "9s")
    words = ("--tier", "kernel", "--interval", 0.25, "--record", folder / f"{name}.luns")
    environment = os.environ | {SCRATCH_ENV: str(folder / name)}
    pipe = subprocess.PIPE
    return Forked("run", "--json", *map(str, (*load, *words)), stdout=pipe, stderr=pipe, env=environment)


def _figures(folder: Path, a: str, b: str, *words: object) -> tuple[int, dict[str, dict[str, Any]]]:
    done = _lunscope(folder, "compare", folder / a, folder / b, "--table", "load_total", "--json", *words)
    assert done.stderr == ""
    (row,) = json.loads(done.stdout)["rows"]
    return done.returncode, {field["id"]: field for field in row["fields"]}


@pytest.mark.waits
def test_same_load_is_neither_better_nor_worse_at_a_wide_delta(folder: Path) -> None:
    code, figures = _figures(folder, "first.luns", "second.luns", "--delta", "1000%", "--fail-on", "worse")
    assert code == 0
    assert not {field["verdict"] for field in figures.values()} & {"better", "worse", "differs"}
    assert figures["iops"]["verdict"] == figures["bytes_per_s"]["verdict"] == "equivalent"


def test_larger_blocks_at_the_same_rate_move_more_bytes_at_as_many_ios(folder: Path) -> None:
    code, figures = _figures(folder, "first.luns", "large.luns", "--delta", "50%")
    assert (code, figures["bytes_per_s"]["verdict"], figures["iops"]["verdict"]) == (0, "better", "equivalent")
    assert figures["bytes_per_s"]["relative"]["difference"] == pytest.approx(63, rel=0.3)
    back, figures = _figures(folder, "large.luns", "first.luns", "--delta", "50%", "--fail-on", "worse")
    assert (back, figures["bytes_per_s"]["verdict"]) == (1, "worse")


def test_figures_of_the_recording_are_those_of_the_run(folder: Path) -> None:
    _, figures = _figures(folder, "first.luns", "second.luns")
    for side, name in (("a", "first"), ("b", "second")):
        run = json.loads((folder / f"{name}.json").read_text())
        # The first interval of a load and what came after the last sample are in the result alone.
        assert figures["p50_ms"][side] == pytest.approx(run["total"]["latency_us"]["p50"] / 1000, rel=0.3)
        assert figures["iops"][side] == pytest.approx(run["total"]["iops"], rel=0.3)


def test_recording_in_progress_is_compared_with_its_own_past(tmp_path: Path) -> None:
    growing = tmp_path / "growing.luns"
    recording = ("record", "-o", growing, "--interval", "0.1", "--tier", "kernel")
    recorder = Forked(*recording, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        split_s = _time_of_sample(growing, 15, of_at_least=30)
        words = (f"{growing}@..{split_s}", f"{growing}@{split_s}..", "--table", "host", "--json")
        done = _lunscope(tmp_path, "compare", *words)
    finally:
        recorder.terminate()
        recorder.wait(timeout=60)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["a"]["growing"], document["b"]["growing"]) == (False, True)
    assert "more intervals" in document["rows"][0]["fields"][0]["reason"]


def _time_of_sample(path: Path, number: int, of_at_least: int) -> float:
    """Seconds from the first sample of a growing recording to another, once it holds enough of them."""
    end_s = time.monotonic() + 60
    while time.monotonic() < end_s:
        with contextlib.suppress(LunscopeError), SessionReader(path) as reader:
            if len(reader) >= of_at_least:
                times = reader.times_at(number)
                assert times is not None
                return (times[0] - reader.start_ns) / 1e9
        time.sleep(0.2)
    pytest.fail(f"{path}: no {of_at_least} samples within 60 s")
