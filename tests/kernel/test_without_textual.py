"""Verbs without a screen work where textual and rich are not installed: on a server, in an image of few packages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.config import SCRATCH_ENV

ROOT = Path(__file__).parents[2]
RECORDING = ROOT / "tests" / "recordings" / "sampled.luns"
BLOCKER = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"textual", "rich"}:
            raise ModuleNotFoundError(f"{name} is absent", name=name)

sys.meta_path.insert(0, Absent())
"""

Python = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def python(tmp_path: Path) -> Python:
    """Run Python, and whatever it starts, without textual and rich."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(BLOCKER)

    def call(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(site), SCRATCH_ENV: str(tmp_path / "scratch")},
        )

    return call


@pytest.mark.parametrize("module", ["textual.app", "rich"])
def test_they_are_absent_here(python: Python, module: str) -> None:
    done = python("-c", f"import {module}")
    assert done.returncode == 1
    assert f"ModuleNotFoundError: {module.partition('.')[0]}" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("--version",),
        ("--help",),
        ("report", "--from", RECORDING),
        ("report", "-L", "-H", "--from", RECORDING),
        ("report", "--json", "--from", RECORDING),
        ("export", "--format", "csv", RECORDING),
        ("export", "--format", "jsonl", RECORDING),
        ("scan",),
        ("doctor", "--json"),
        ("tune", "list"),
    ],
    ids=lambda arguments: " ".join(Path(part).name for part in arguments),
)
def test_verb_reads_without_them(python: Python, arguments: tuple[str | Path, ...]) -> None:
    done = python("-m", "tui", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_record_then_report_without_them(python: Python, tmp_path: Path) -> None:
    recording = tmp_path / "here.luns"
    done = python("-m", "tui", "record", "-o", recording, "--interval", "0.2", "--duration", "1s")
    assert done.returncode == 0, done.stderr
    assert "samples" in done.stderr
    done = python("-m", "tui", "report", "--from", recording)
    assert (done.returncode, done.stderr) == (0, "")


def test_metrics_without_them(python: Python, tmp_path: Path) -> None:
    file = tmp_path / "lunscope.prom"
    done = python("-m", "tui", "metrics", "--once", "--textfile", file)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\nlunscope_info{" in file.read_text(encoding="utf-8")


def test_load_without_a_screen_runs_without_them(python: Python, tmp_path: Path) -> None:
    recording = tmp_path / "load.luns"
    load = ("--headless", "--json", "--runtime", "500ms", "--size", "4m", "--qd", "2", "--record", recording)
    done = python("-m", "tui", "run", *load)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["total"]["ios"] > 0
    assert recording.stat().st_size > 0
