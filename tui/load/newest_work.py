"""Work in a thread of which only the newest request counts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

Work = Callable[[], None]


PATIENCE_S = 5.0
"""Work that takes longer is left to itself: the device does not answer, and others may."""


class NewestWork:
    """Does one request at a time in a thread of its own; those that a newer one overtook are never begun.

    For what may block as long as a device does: a thread worker of Textual would block the exit.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._next: Work | None = None
        self._begun_s: float | None = None
        """When the present work was begun; None while there is none."""

    def request(self, work: Work) -> None:
        """Do this next, instead of what waits; never blocks."""
        now_s = time.monotonic()
        with self._lock:
            self._next = work
            if self._begun_s is None or now_s - self._begun_s > PATIENCE_S:
                self._begun_s = now_s
                threading.Thread(target=self._run, name=self._name, daemon=True).start()

    @property
    def is_overtaken(self) -> bool:
        """Whether another request waits, for work that can end early."""
        return self._next is not None

    def _run(self) -> None:
        while True:
            with self._lock:
                work, self._next = self._next, None
                self._begun_s = None if work is None else time.monotonic()
            if work is None:
                return
            work()
