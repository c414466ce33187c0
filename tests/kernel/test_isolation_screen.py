"""The isolation curve on a terminal: its keys work, leaving prints it, and nothing of it is left."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from bench.shown_text import ShownText
from bench.terminal import Terminal
from collectors.session.reader import SessionReader
from engine.isolation.events import RecordedIsolation
from tests import needs
from tests.kernel.conftest import Storage
from tests.kernel.test_isolation import BLKIO
from tests.kernel.test_sweep_screen import _left, _start, _wait_for, at_home
from tests.kernel.throttle import throttle
from tests.recorded import recorded_isolation

__all__ = ["at_home"]
pytestmark = [pytest.mark.slow, needs.root, needs.loop, throttle]


class _Screen:
    """A terminal with what it shows."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal, self._text, self._fed = terminal, ShownText(80, 24), 0

    def shows(self, words: str) -> None:
        """Wait until one of its lines has these words."""
        _wait_for(self.terminal, lambda: self._has(words))

    def _has(self, words: str) -> bool:
        self._text.feed(bytes(self.terminal.output[self._fed :]))
        self._fed = len(self.terminal.output)
        return self._text.shows(words)


@pytest.fixture
def begun(terminals: list[Terminal], storage: Storage, tmp_path: Path) -> _Screen:
    """Lunscope with three loads of an aggressor, of which the first is measured."""
    words = ("--preset", "isolation", "--target", storage.loop(), "--rate", "200", "--vary", "qd=1,2,4")
    limits = ("--cap", "riops=200", "--within", "3", "--runtime", "3s", "--interval=0.5")
    return _Screen(_start(terminals, *words, *limits, f"--record={tmp_path / 'a.luns'}"))


def _groups() -> list[str]:
    return [entry.name for entry in BLKIO.iterdir() if entry.name.startswith("lunscope-isolation-")]


def _recorded(path: Path) -> RecordedIsolation:
    with SessionReader(path) as reader:
        found = recorded_isolation(reader.events())
    assert found is not None
    return found


@pytest.mark.waits
def test_pause_skip_and_stop_keep_what_was_measured(begun: _Screen, tmp_path: Path) -> None:
    begun.shows("1/8 points")
    _wait_for(begun.terminal, lambda: bool(_groups()))
    begun.shows("now beside QD 1")
    begun.terminal.press("n")
    begun.shows("skipped beside QD 1")
    begun.shows("now beside QD 2")
    begun.terminal.press("p")
    begun.shows("2/8 points")
    begun.shows("PAUSED   2/8 points")
    begun.terminal.press("p")
    begun.shows("now beside QD 4")
    begun.terminal.press("x")
    begun.shows("the load is stopped")
    _wait_for(begun.terminal, lambda: not _groups())
    text, code = _left(begun.terminal)
    assert code == 1, "points are missing"
    assert "not complete: stopped; 2 points were measured" in text
    assert "left out: beside QD 1, 4k, cap none" in text
    found = _recorded(tmp_path / "a.luns")
    assert (found.is_over, found.study.ended, found.plan.expected) == (True, "stopped", 8)
    assert [point.aggressor and point.aggressor.queue_depth for point in found.study.points] == [None, 2]
    assert all(len(point.seconds) == 3 for point in found.study.points)
    assert len(found.study.left_out) == 1


def test_nothing_is_left_after_kill_9_of_the_screens(begun: _Screen, tmp_path: Path) -> None:
    begun.shows("now beside QD 1")
    _wait_for(begun.terminal, lambda: bool(_groups()))
    os.kill(begun.terminal.pid, signal.SIGKILL)
    _wait_for(begun.terminal, lambda: not _groups())
    found = _recorded(tmp_path / "a.luns")
    assert not found.is_over
