"""The escape sequences that make a terminal ours and give it back (xterm's ctlseqs; kitty's keyboard protocol)."""

from __future__ import annotations

import os

from textual import constants

_MOUSE = (1000, 1003, 1015, 1006)
"""Buttons, moves, and two ways to report large coordinates."""
_ALTERNATE_SCREEN, _CURSOR, _FOCUS, _PASTE, _WRAP, _SYNCHRONIZED = 1049, 25, 1004, 2004, 7, 2026
_KITTY_KEYS = 1 | 8 | 16
"""Disambiguate, report all keys, with their text."""

WHERE_IS_THE_CURSOR = "\x1b[6n"
"""Every terminal that answers anything answers this, and in the order of the questions."""
ARE_YOU_THERE = "\x1b[5n"
"""Asked last: the answer is another than that to a question before, so what comes before it is over."""
SYNCHRONIZED_END = f"\x1b[?{_SYNCHRONIZED}l"


def _on(*modes: int) -> str:
    return "".join(f"\x1b[?{mode}h" for mode in modes)


def _off(*modes: int) -> str:
    return "".join(f"\x1b[?{mode}l" for mode in modes)


def enter(*, mouse: bool) -> str:
    """Take the alternate screen, ask for what is wanted of it, and what it can do."""
    # Apple's terminal prints the end of a question that it does not know.
    asks = "" if os.environ.get("TERM_PROGRAM") == "Apple_Terminal" else f"\x1b[?{_SYNCHRONIZED}$p"
    kitty = "" if constants.DISABLE_KITTY_KEY else f"\x1b[>{_KITTY_KEYS}u"
    modes = _on(_ALTERNATE_SCREEN) + (_on(*_MOUSE) if mouse else "") + _off(_CURSOR) + _on(_FOCUS, _PASTE)
    return modes + kitty + _off(_WRAP) + asks + WHERE_IS_THE_CURSOR


def leave(*, mouse: bool) -> str:
    """Give everything back; the keyboard before the screen, whose state it is."""
    kitty = "" if constants.DISABLE_KITTY_KEY else "\x1b[<u"
    quiet = SYNCHRONIZED_END + (_off(*_MOUSE) if mouse else "") + _off(_FOCUS, _PASTE)
    return f"{quiet}\x1b[0m{kitty}{_on(_WRAP)}{_off(_ALTERNATE_SCREEN)}{_on(_CURSOR)}"
