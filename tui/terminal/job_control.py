"""Stopping for the shell: Ctrl-Z, fg and bg."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable

from tui.terminal.tty import Tty

_SIGNAL_S = 0.05
"""Time for a signal that came with SIGCONT, as `kill %1` sends it, to be handled before the next stop."""


def stop_until_continued(tty: Tty, *, group: bool, is_ending: Callable[[], bool]) -> None:
    """Stop this process, and with `group` all of its job; returns once it continues in the foreground, or is to end.

    SIGTSTP and not SIGSTOP: the kernel ignores the former where no shell is left to continue us, as under
    `ssh -t host lunscope`. To be called in the main thread, with the terminal given back.
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
