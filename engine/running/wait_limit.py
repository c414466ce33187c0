"""How long the end of a load may wait for what does not return."""

from __future__ import annotations

import threading
import time


class WaitLimit:
    """A limit that can be shortened, or ended at once; every member may be called from any thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._until_s: float | None = None
        self._over = False

    @property
    def limited(self) -> bool:
        """Whether there is a limit yet."""
        with self._changed:
            return self._over or self._until_s is not None

    @property
    def over(self) -> bool:
        """Whether the wait was given up."""
        return self.left_s == 0.0

    @property
    def left_s(self) -> float:
        """Seconds until the limit; infinite without one."""
        with self._changed:
            return self._left_s()

    def limit(self, seconds: float) -> None:
        """Wait so long from now on at most; an earlier limit stays."""
        until_s = time.monotonic() + seconds
        with self._changed:
            self._until_s = until_s if self._until_s is None else min(self._until_s, until_s)
            self._changed.notify_all()

    def end(self) -> None:
        """Wait no longer."""
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def wait_for(self, done: threading.Event, step_s: float = 0.02) -> bool:
        """Wait until an event is set or wait_limit is over; whether it was set."""
        while not done.wait(min(step_s, self.left_s)):
            if self.over:
                return done.is_set()
        return True

    def _left_s(self) -> float:
        if self._over:
            return 0.0
        return float("inf") if self._until_s is None else max(self._until_s - time.monotonic(), 0.0)
