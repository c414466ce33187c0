"""What an app hands to the driver of its terminal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tui.terminal.tty import Tty


def _nothing(*_arguments: object) -> None:
    pass


@dataclass(frozen=True, slots=True)
class TerminalUse:
    """The terminal, and who is called when something happens to it; all calls come from the event loop."""

    tty: Tty
    lose: Callable[[str], None]
    """The terminal has gone, for this reason."""
    is_ending: Callable[[], bool]
    """Whether the program is to end for a reason from outside: no answer is waited for."""
    before_stop: Callable[[], None] = _nothing
    """The process is about to be stopped by Ctrl-Z."""
    after_stop: Callable[[float | None], None] = _nothing
    """It continued after so many seconds; None if it was stopped without being asked."""
