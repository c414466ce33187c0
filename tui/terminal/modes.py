"""The modes of the terminal that the screens need: sequences that set them, and that restore the former ones.

They are restored, too, where the process of the screens was killed, such as by the kernel for lack of memory.
"""

from __future__ import annotations

import os
import sys
import termios
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from engine.errors import UsageError
from tui.terminal.abilities import FULL, Abilities, abilities_of
from tui.terminal.tty import open_terminal

_NO_KITTY_KEYS = os.environ.get("TEXTUAL_DISABLE_KITTY_KEY") == "1"
"""Textual's own variable: its other drivers do not set the keyboard protocol then."""
_MOUSE = (1000, 1003, 1015, 1006)
"""Buttons, moves, and two ways to report large coordinates."""
_ALTERNATE_SCREEN, _CURSOR, _FOCUS, _PASTE, _WRAP, _SYNCHRONIZED = 1049, 25, 1004, 2004, 7, 2026
_KITTY_KEYS = 1 | 8 | 16
"""Disambiguate, report all keys, with their text."""

WHERE_IS_THE_CURSOR = "\x1b[6n"
"""Every terminal that answers queries answers this one, and in the order of the queries."""
ARE_YOU_THERE = "\x1b[5n"
"""Sent last: its reply differs from all others, so every earlier reply has arrived before it."""
CLEAR = "\x1b[2J\x1b[H"
"""The whole screen, with the cursor in its first cell."""
SYNCHRONIZED_END = f"\x1b[?{_SYNCHRONIZED}l"
OPERATING_SYSTEM_COMMAND = "\x1b]"
"""Begin of OSC sequences: title, pointer shape, clipboard."""


def _on(*modes: int) -> str:
    return "".join(f"\x1b[?{mode}h" for mode in modes)


def _off(*modes: int) -> str:
    return "".join(f"\x1b[?{mode}l" for mode in modes)


def enter(*, mouse: bool, abilities: Abilities = FULL) -> str:
    """Switch to the alternate screen, set modes, and query capabilities."""
    if not abilities.extensions:
        return _off(_CURSOR, _WRAP) + CLEAR + (WHERE_IS_THE_CURSOR if abilities.answers else "")
    # Apple's terminal prints the end of a query that it does not know.
    asks = "" if os.environ.get("TERM_PROGRAM") == "Apple_Terminal" else f"\x1b[?{_SYNCHRONIZED}$p"
    kitty = "" if _NO_KITTY_KEYS else f"\x1b[>{_KITTY_KEYS}u"
    modes = _on(_ALTERNATE_SCREEN) + (_on(*_MOUSE) if mouse else "") + _off(_CURSOR) + _on(_FOCUS, _PASTE)
    return modes + kitty + _off(_WRAP) + asks + WHERE_IS_THE_CURSOR


def leave(*, mouse: bool, abilities: Abilities = FULL, clear: str = CLEAR) -> str:
    """Restore everything; the keyboard mode before the screen, as it belongs to the alternate screen.

    The screen is cleared first: a terminal without an alternate one, such as GNU screen by default, shows the last
    frame otherwise, and what is printed next would be somewhere in it.
    """
    if not abilities.extensions:
        return f"\x1b[0m{clear}{_on(_WRAP, _CURSOR)}"
    kitty = "" if _NO_KITTY_KEYS else "\x1b[<u"
    quiet = SYNCHRONIZED_END + (_off(*_MOUSE) if mouse else "") + _off(_FOCUS, _PASTE)
    return f"{quiet}\x1b[0m{clear}{kitty}{_on(_WRAP)}{_off(_ALTERNATE_SCREEN)}{_on(_CURSOR)}"


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
