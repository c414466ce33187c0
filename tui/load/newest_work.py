"""Work in a thread of which only the newest request counts."""

from __future__ import annotations

import threading
from collections.abc import Callable

Work = Callable[[], None]


class NewestWork:
    """Does one request at a time in a thread of its own; those that a newer one overtook are never begun.

    For what may block as long as a device does: a thread worker of Textual would block the exit.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._next: Work | None = None
        self._is_at_work = False

    def request(self, work: Work) -> None:
        """Do this next, instead of what waits; never blocks."""
        with self._lock:
            self._next = work
            if not self._is_at_work:
                threading.Thread(target=self._run, name=self._name, daemon=True).start()
                self._is_at_work = True

    @property
    def is_overtaken(self) -> bool:
        """Whether another request waits, for work that can end early."""
        return self._next is not None

    def _run(self) -> None:
        while True:
            with self._lock:
                work, self._next = self._next, None
                if work is None:
                    self._is_at_work = False
                    return
            work()
