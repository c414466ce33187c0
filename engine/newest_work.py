"""Work in a thread; only the newest request counts."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

Work = Callable[[], None]

PATIENCE_S = 5.0
"""Work on a device that takes longer is left to itself: the device does not answer, and others may."""


class NewestWork:
    """Does one request at a time in a thread of its own; those that a newer one overtook are never begun.

    For what may block as long as a device does: a thread worker of Textual would block the exit.
    """

    def __init__(self, name: str, patience_s: float = math.inf) -> None:
        """Name the thread, and say after which time another request is begun beside work that does not end."""
        self._name = name
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._next: Work | None = None
        self._begun_s: float | None = None
        """Time at which the present work was begun; None while there is none."""

    def request(self, work: Work) -> None:
        """Do this next, instead of what waits; never blocks.

        Raises:
            RuntimeError: there is no room for a thread; the next request tries again.
        """
        now_s = time.monotonic()
        with self._lock:
            self._next = work
            if self._begun_s is not None and now_s - self._begun_s <= self._patience_s:
                return
            self._begun_s = now_s
        # Without the lock: the thread would wait for that, and then until the screens have drawn a frame.
        try:
            threading.Thread(target=self._run, name=self._name, daemon=True).start()
        except RuntimeError:
            self._begun_s = None
            raise

    def forget(self) -> None:
        """Do not begin what waits."""
        with self._lock:
            self._next = None

    @property
    def is_overtaken(self) -> bool:
        """Whether another request waits, for work that can end early."""
        return self._next is not None

    @property
    def is_busy(self) -> bool:
        """Whether a request is being worked on, or waits."""
        return self._begun_s is not None

    def _run(self) -> None:
        while True:
            with self._lock:
                work, self._next = self._next, None
                self._begun_s = None if work is None else time.monotonic()
            if work is None:
                return
            work()
