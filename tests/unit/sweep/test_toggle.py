"""The command of the operator between two parts of a preset: where nobody sees what it says, its end does."""

from __future__ import annotations

import subprocess
import threading

import pytest

from engine.errors import LunscopeError, StoppedError
from engine.sweep.presets.command import run_command


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("echo first >&2; echo no such switch >&2; exit 3", "ended with status 3: no such switch: nothing more"),
        ("exit 4", "ended with status 4: nothing more"),
        ("kill -9 $$", "was killed by SIGKILL: nothing more"),
    ],
)
def test_how_it_ended_is_said_with_its_last_words(command: str, says: str) -> None:
    with pytest.raises(LunscopeError) as failed:
        run_command(command, threading.Event().wait, subprocess.DEVNULL)
    assert says in str(failed.value)


def test_what_is_well_says_nothing_and_what_is_stopped_ends() -> None:
    run_command("echo fine >&2", threading.Event().wait, subprocess.DEVNULL)
    with pytest.raises(StoppedError):
        run_command("exec sleep 60", lambda _: True, subprocess.DEVNULL)
