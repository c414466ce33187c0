"""Tells when targets of a load start to fail, recover, or all fail for too long."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.running.tap import ACTIVE, FAILING

GIVE_UP_S = 5.0
"""How long all targets may fail before the load ends."""


@dataclass(frozen=True, slots=True)
class FailureNews:
    """Targets, by index, whose state changed since the last look."""

    began: tuple[int, ...] = ()
    recovered: tuple[int, ...] = ()


class FailureWatch:
    """Compares the counters of one moment with those of the moment before."""

    def __init__(self) -> None:
        self._failing: frozenset[int] = frozenset()
        self._all_since_ns: int | None = None

    def observe(self, counters: NDArray[np.uint64], now_ns: int) -> FailureNews:
        """Compare; targets outside the stripe width are neither failing nor recovered."""
        active = counters[:, ACTIVE] > 0
        failing = active & (counters[:, FAILING] > 0)
        if not active.any() or (failing != active).any():
            self._all_since_ns = None
        elif self._all_since_ns is None:
            self._all_since_ns = now_ns
        before, self._failing = self._failing, frozenset(np.flatnonzero(failing).tolist())
        recovered = (index for index in sorted(before - self._failing) if active[index])
        return FailureNews(tuple(sorted(self._failing - before)), tuple(recovered))

    def hopeless(self, now_ns: int) -> bool:
        """Whether every active target has failed for longer than GIVE_UP_S."""
        return self._all_since_ns is not None and now_ns - self._all_since_ns > GIVE_UP_S * 1e9
