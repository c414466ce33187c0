"""What a person sees when the parts are not where they should be."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


def _run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": ""}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_checkout_without_native_core_says_so_in_one_line(tmp_path: Path) -> None:
    for package in ("engine", "tui"):
        shutil.copytree(
            REPOSITORY / package, tmp_path / package, ignore=shutil.ignore_patterns("*.so", "native", "__pycache__")
        )
    done = _run("from tui.main import main; main()", tmp_path)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "native core is not built" in done.stderr
    assert "make build" in done.stderr


@pytest.mark.slow
def test_headless_verbs_do_not_load_textual(tmp_path: Path) -> None:
    code = """
import sys
from click.testing import CliRunner
from tui.cli import cli
for arguments in (["--help"], ["doctor", "--json"]):
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
assert "textual" not in sys.modules
assert "rich" not in sys.modules
"""
    done = _run(code, REPOSITORY)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_screens_are_imported_when_they_are_first_shown() -> None:
    code = """
import sys
import tui.app.app
from tui.screen_registry import TABS
from tui.screens.shared.base import view_class
named = {f"tui.screens.{entry.view.partition(':')[0]}" for entry in TABS}
loaded = named & set(sys.modules)
assert not loaded, loaded
for entry in TABS:
    view_class(entry)
assert named <= set(sys.modules)
"""
    done = _run(code, REPOSITORY)
    assert done.returncode == 0, done.stderr
