"""Looks at what many devices hold, some of them at once: disks that are slow are slow beside each other."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping

from engine.guard.content import Content, content_of
from engine.guard.finding import Found

AT_ONCE = 32
"""Devices, each with the reads that content.py has outstanding."""
PATIENCE_S = 60.0
"""Time for all devices together; one that does not answer takes 10 s of it."""


class TargetSampling:
    """Begins at once, in threads of its own; what was not seen when the time is over counts as not seen."""

    def __init__(self, devices: Mapping[int, tuple[Found, int]], patience_s: float = PATIENCE_S) -> None:
        """Begin.

        Args:
            devices: each as it was found, with its size, by its number.
            patience_s: for all of them together.
        """
        self._left = deque(devices.items())
        self._patience_s, self._until_s = patience_s, time.monotonic() + patience_s
        self._seen: dict[int, Content] = {}
        self._changed = threading.Condition()
        for _ in range(min(AT_ONCE, len(devices))):
            threading.Thread(target=self._look, name="lunscope-sampling", daemon=True).start()

    def of(self, number: int) -> Content:
        """Say what a device holds, once it was seen or the time is over."""
        with self._changed:
            is_seen = self._changed.wait_for(lambda: number in self._seen, max(0.0, self._until_s - time.monotonic()))
            seen = len(self._seen)
        if is_seen:
            return self._seen[number]
        return Content(unseen=f"it was not read in the {self._patience_s:g} s in which {seen} other devices were")

    def close(self) -> None:
        """Begin with no other device; those that are being looked at are not waited for."""
        self._left.clear()

    def _look(self) -> None:
        while True:
            try:
                number, (found, size_bytes) = self._left.popleft()
            except IndexError:
                return
            content = content_of(found, size_bytes)
            with self._changed:
                self._seen[number] = content
                self._changed.notify_all()
