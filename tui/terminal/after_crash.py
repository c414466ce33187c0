"""The terminal after the process of the screens was killed, such as by the kernel for lack of memory."""

from __future__ import annotations

import os
import sys
import termios
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from engine.errors import UsageError
from tui.terminal.abilities import abilities_of
from tui.terminal.modes import leave
from tui.terminal.tty import open_terminal

_SLOW_S = 0.3
"""Time for a slow terminal to become writable."""


def remember_terminal() -> Callable[[], None]:
    """Note the modes of the terminal that stdin is; returns what restores them if they were changed since."""
    try:
        before = termios.tcgetattr(sys.stdin.fileno())
    except (termios.error, AttributeError, ValueError, OSError):  # No terminal, or stdin is closed.
        return lambda: None
    return partial(_restore, before)


def _restore(before: list[Any]) -> None:
    with suppress(UsageError, OSError, termios.error), open_terminal() as tty:
        # In the background another program has the terminal.
        if not tty.is_foreground or termios.tcgetattr(tty.fd) == before:
            return
        abilities = abilities_of()
        if tty.takes_output(_SLOW_S):
            with suppress(BlockingIOError):  # It has room for less: its modes are still restored.
                os.write(tty.fd, leave(mouse=abilities.mouse, abilities=abilities).encode())
        termios.tcsetattr(tty.fd, termios.TCSANOW, before)
        termios.tcflush(tty.fd, termios.TCIFLUSH)
