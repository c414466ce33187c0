"""Tests that fail beside others and pass alone, in runs of pytest of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.again import Failure, read_failures, verdict

TESTS = """
from pathlib import Path
SEEN = Path(__file__).with_name("seen")
def test_once():
    is_first = not SEEN.exists()
    SEEN.touch()
    assert not is_first, "too busy"
def test_sound():
    pass
"""
BROKEN = "\ndef test_always():\n    raise ValueError('broken')\n"
ROOT = Path(__file__).parents[2]


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *arguments]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def first_run(folder: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(text)
    return python(folder, "pytest", "-p", "tests.again", "-n", "2", *options, "--failed-to", "failed")


@pytest.mark.slow
def test_what_failed_is_run_again_alone_and_fails_the_command_if_it_fails_twice(tmp_path: Path) -> None:
    first = first_run(tmp_path, TESTS + BROKEN)
    assert (first.returncode, "2 failed, 1 passed" in first.stdout) == (0, True), first.stdout
    again = python(tmp_path, "tests.again", "failed")
    assert again.returncode == 1
    assert set(again.stdout.splitlines()[-2:]) == {
        "passed alone: test_it.py::test_once: AssertionError: too busy",
        "failed twice: test_it.py::test_always: ValueError: broken",
    }


def test_more_than_three_that_pass_alone_are_too_many() -> None:
    failures = [Failure(f"test_{number}", "too busy") for number in range(4)]
    assert verdict(failures[:1], []) == (["passed alone: test_0: too busy"], True)
    assert verdict(failures[:3], [])[1]
    lines, is_passed = verdict(failures, [])
    assert (len(lines), is_passed) == (5, False)
    assert not verdict(failures[:1], failures[:1])[1]


def test_a_test_is_run_again_once(tmp_path: Path) -> None:
    kept = tmp_path / "failed"
    kept.write_text('{"test":"a","reason":"x"}\n{"test":"b","reason":"y"}\n{"test":"a","reason":"x"}\n')
    assert [failure.test for failure in read_failures(kept)] == ["a", "b"]
