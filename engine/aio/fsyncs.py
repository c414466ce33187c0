"""When a target is due an fsync: after every so many of its completed writes."""

from __future__ import annotations


class Fsyncs:
    """Counts the writes of each target; its owner locks."""

    def __init__(self, targets: int) -> None:
        self._writes = [0] * targets
        self._owed = [0] * targets

    def wrote(self, target: int, every: int | None) -> None:
        """Count one write that completed without an error."""
        if every is None:
            return
        self._writes[target] += 1
        if self._writes[target] % every == 0:
            self._owed[target] += 1

    def take(self, target: int, every: int | None) -> bool:
        """Take one fsync to be issued, if one is due."""
        if every is None or not self._owed[target]:
            return False
        self._owed[target] -= 1
        return True
