"""Slow work in the background that leaves the processor to others."""

from __future__ import annotations

import threading
import time

from engine.errors import StoppedError

_SHARE = 0.1
"""Of one core."""
_SLICE_S = 0.01
"""Of processor time, after which it pauses: others wait no longer for the interpreter."""


class ScanPace:
    """Keeps the calling thread below a tenth of a core."""

    def __init__(self, stopped: threading.Event) -> None:
        self._stopped = stopped
        self._worked_s = time.thread_time()

    def pause(self) -> None:
        """Pause if enough was done since the last pause.

        Raises:
            StoppedError: there is nothing to work for any more.
        """
        used_s = time.thread_time() - self._worked_s
        if used_s >= _SLICE_S:
            if self._stopped.wait(used_s * (1 / _SHARE - 1)):
                raise StoppedError("stopped")
            self._worked_s = time.thread_time()
