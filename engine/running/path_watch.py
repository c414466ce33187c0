"""Which paths of a running load began to fail, and which answer again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.events import EventKind
from engine.running.board import Board
from engine.running.layout_tap import PATH_FAILED


class PathCounterWatch:
    """Compares the path counters of one moment with those of the moment before, and notes what changed."""

    def __init__(self) -> None:
        self._failed: frozenset[int] = frozenset()

    def observe(self, counters: NDArray[np.uint64], names: Sequence[str], board: Board) -> None:
        """Note paths that failed or recovered since the last call."""
        if not len(counters):
            return
        before, self._failed = self._failed, frozenset(np.flatnonzero(counters[:, PATH_FAILED]).tolist())
        for index in sorted(self._failed - before):
            text = f"path {names[index]} failed: its I/Os go over the others until it answers"
            board.note(EventKind.LOAD, text, {"failed_path": names[index]})
        for index in sorted(before - self._failed):
            board.note(EventKind.LOAD, f"path {names[index]} answers again", {"recovered_path": names[index]})
