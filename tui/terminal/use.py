"""What an app passes to its terminal driver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tui.terminal.tty import Tty


def _nothing(*_arguments: object) -> None:
    pass


@dataclass(frozen=True, slots=True)
class TerminalUse:
    """The terminal and its callbacks, which run in the event loop."""

    tty: Tty
    lose: Callable[[str], None]
    """The terminal is lost, for this reason."""
    is_ending: Callable[[], bool]
    """Whether a signal or hangup ends the program: no replies are awaited."""
    before_stop: Callable[[], None] = _nothing
    """The process is about to be stopped by Ctrl-Z."""
    after_stop: Callable[[float | None], None] = _nothing
    """It continued after this many seconds; None after SIGSTOP."""
