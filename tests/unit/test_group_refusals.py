"""What several unlike loads at once are not driven with is refused by name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tui.cli import run_cli

GLOBAL = "[global]\nfilename=/dev/x\ndirect=1\nioengine=io_uring\nruntime=5\ntime_based\nrw=randread\n"
TWO = GLOBAL + "[a]\n[b]\nbs=8k\n"
NAMED = "[a] and [b] run at the same time with unlike settings"


@pytest.fixture
def job(tmp_path: Path) -> str:
    path = tmp_path / "two.fio"
    path.write_text(TWO)
    return str(path)


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run_cli(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    return err


def test_a_screen_is_refused_with_the_fix(
    job: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    assert refusal(capsys, "run", job).endswith(f"{NAMED}: there is no screen for them: add --headless\n")
