"""An error in a screen is one line and a crash file, like one in any verb."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.terminal import Terminal

pytestmark = pytest.mark.slow

PATIENCE_S = 40.0
FAILING = """
import sys
from tui.screens.events import EventsScreen
def show_frame(self, frame):
    raise ZeroDivisionError("frame")
EventsScreen.show_frame = show_frame
sys.argv = ["lunscope", "watch"]
from tui.main import main
main()
"""


def test_an_error_in_a_screen_is_a_line_and_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    terminal = Terminal([sys.executable, "-c", FAILING], 100, 30)
    assert terminal.drain(PATIENCE_S, until=b"Help")
    terminal.press("3")
    assert terminal.drain(PATIENCE_S, until=b"please report")
    terminal.wait(PATIENCE_S)
    assert b"Traceback" not in terminal.output
    assert terminal.close() == 1
    (crash,) = (tmp_path / ".local/state/lunscope/crashes").iterdir()
    assert "ZeroDivisionError: frame" in crash.read_text()
