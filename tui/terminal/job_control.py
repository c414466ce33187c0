"""Job control (Ctrl-Z, fg and bg), and the effect of a stop of the process on a load."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from tui.terminal.tty import Tty

if TYPE_CHECKING:
    from engine.running.control import LoadControl


class Stops:
    """Excludes I/Os delayed by a stop of the process from the statistics, and records the stop as an event."""

    def __init__(self, control: LoadControl | None) -> None:
        self._control = control

    def before(self) -> None:
        """Close the epoch: I/Os that are outstanding now would be measured with the whole stop."""
        if self._control is not None:
            self._control.part_epoch()

    def after(self, seconds: float | None) -> None:
        """Record the length of the stop; None after SIGSTOP, when the epoch includes the outstanding I/Os."""
        if self._control is None:
            return
        self._control.part_epoch()
        self._control.note_stop(seconds)


_SIGNAL_S = 0.05
"""Time to handle a signal that came with SIGCONT, as `kill %1` sends it, before the next stop."""


def keep_threads_stoppable() -> None:
    """Make libraries start commands by fork(2) from here on, not by vfork(2).

    The thread that called vfork cannot be stopped until its child executes, and Ctrl-Z stops the child before it does:
    the shell would wait for ever for the process to stop. ctypes.util runs a command to find libudev.
    """
    subprocess._USE_VFORK = False  # type: ignore[misc] # the switch that the documentation of subprocess names


def stop_until_continued(tty: Tty, *, group: bool, is_ending: Callable[[], bool]) -> None:
    """Stop this process, and with `group` its job; returns once it continues in the foreground, or is to end.

    SIGTSTP and not SIGSTOP: the kernel ignores the former where no shell is left to continue us, as under
    `ssh -t host lunscope`. Call it in the main thread, with the terminal restored.
    """
    before = signal.signal(signal.SIGTSTP, signal.SIG_IGN)
    try:
        if group:
            os.kill(0, signal.SIGTSTP)  # To the others; a second stop of ours would need a second fg.
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        while True:
            # To this thread, so that it has stopped when the call returns.
            signal.pthread_kill(threading.get_ident(), signal.SIGTSTP)
            time.sleep(_SIGNAL_S)
            if tty.is_foreground or is_ending():
                return
    finally:
        signal.signal(signal.SIGTSTP, before)
