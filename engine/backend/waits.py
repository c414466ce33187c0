"""System calls that have begun and not returned, so that one that hangs can be named."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from engine.backend.outstanding import Outstanding

MANY_CALLS = frozenset({"open", "check"})
"""Each is all the calls that open or check the targets, which take long on a host with many."""
_MANY_CALLS_S = 1.8
"""How long those may take before they are named."""


class Waits:
    """Calls in progress by the name of what they are on; every member may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._begun: dict[int, tuple[str, str, int]] = {}

    @contextmanager
    def on(self, name: str, call: str = "") -> Iterator[None]:
        """Note one call on something while the block runs; `call` names one that is no I/O of the load."""
        number = next(self._numbers)
        with self._lock:
            self._begun[number] = (name, call, time.monotonic_ns())
        try:
            yield
        finally:
            with self._lock:
                del self._begun[number]

    def outstanding(self, at_least_s: float = 0.0) -> tuple[Outstanding, ...]:
        """Return calls that have not returned for so long, by what they are on."""
        now_ns = time.monotonic_ns()
        found: dict[tuple[str, str], list[int]] = {}
        with self._lock:
            for name, call, since_ns in self._begun.values():
                least_s = max(at_least_s, _MANY_CALLS_S) if call in MANY_CALLS and at_least_s else at_least_s
                if now_ns - since_ns >= least_s * 1e9:
                    found.setdefault((name, call), []).append(since_ns)
        return tuple(Outstanding(name, len(begun), min(begun), call) for (name, call), begun in found.items())
