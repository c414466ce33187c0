"""The end of a load after the screens were left, and the exit code that says who gave it up."""

from __future__ import annotations

import os
import signal
import threading
from types import SimpleNamespace
from typing import cast

import pytest

from engine.running.control import LoadControl
from tui.app.closing import end_load

PATIENCE_S = 60.0


class Hanging:
    """A load that ends only when it is given up."""

    status = SimpleNamespace(outstanding=())

    def __init__(self, number: signal.Signals | None) -> None:
        self._number = number
        self._given_up = threading.Event()

    def close(self) -> None:
        if self._number is not None:
            os.kill(os.getpid(), self._number)
            assert self._given_up.wait(PATIENCE_S)

    def abandon(self) -> None:
        self._given_up.set()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_gives_up_and_is_the_exit_code(number: signal.Signals) -> None:
    assert end_load(cast("LoadControl", Hanging(number))) == 128 + number


def test_an_end_of_its_own_is_no_failure() -> None:
    assert end_load(cast("LoadControl", Hanging(None))) == 0
