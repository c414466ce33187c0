"""I/Os that do not complete in time: reported when they stall, and how long the end of a load waits for them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from msgspec import Struct

from engine.backend.outstanding import MANY_CALLS, NAMED_AFTER_S, Outstanding, Stall, waiting_text
from engine.events import EventKind
from engine.running.status import StatusStore


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
        """Wait for a time from now on at most; an earlier limit stays."""
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


_PERIOD_S = 0.1
_QUIET_NS = 300_000_000
"""How long nothing must be outstanding for too long until a stall is over."""
_MOST_STALLS = 1000
"""Most stalls listed in the result; all of them are events."""


class _Open(Struct):
    """A stall that is not over yet."""

    first: Outstanding
    latest: Outstanding
    most_ios: int
    quiet_since_ns: int | None = None


class StallWatch:
    """Polls what is outstanding in a thread of its own, so that a hang elsewhere does not delay the report.

    `ask` is called with a number of seconds, and returns what has been outstanding for longer.
    """

    def __init__(self, ask: Callable[[float], tuple[Outstanding, ...]], status_store: StatusStore) -> None:
        self._ask = ask
        self._status_store = status_store
        self._lock = threading.Lock()
        self._open: dict[tuple[str, str], _Open] = {}
        self._stalls: list[Stall] = []
        self._ending_ns: int | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lunscope-stalls", daemon=True)
        self._thread.start()

    def begin_end(self) -> None:
        """Note that the load has ended: what is outstanding from now on outlasts it."""
        with self._lock:
            self._ending_ns = self._ending_ns or time.monotonic_ns()

    def close(self) -> tuple[Stall, ...]:
        """Poll once more, end what is still open, and return all stalls."""
        self._closed.set()
        # Its calls do not block; after the join nothing of the load is in use here any more.
        self._thread.join(_PERIOD_S)
        self._observe()
        with self._lock:
            for key in list(self._open):
                self._end(key, time.monotonic_ns())
            return tuple(self._stalls)

    def _run(self) -> None:
        while not self._closed.wait(_PERIOD_S):
            self._observe()

    def _observe(self) -> None:
        # All stalled I/Os beside one that is reported, though some were issued a little later.
        waits, now_ns = self._ask(NAMED_AFTER_S / 2), time.monotonic_ns()
        waits = tuple(each for each in waits if each.oldest_s(now_ns) >= NAMED_AFTER_S or self._closed.is_set())
        with self._lock:
            found = {(each.target, each.call): each for each in waits}
            for key, each in found.items():
                self._note(key, each, now_ns)
            for key in [key for key in self._open if key not in found]:
                stall = self._open[key]
                stall.quiet_since_ns = stall.quiet_since_ns or now_ns
                if now_ns - stall.quiet_since_ns >= _QUIET_NS:
                    self._end(key, now_ns)
            named = tuple(stall.latest for stall in self._open.values())
            if named != self._status_store.status.outstanding:
                self._status_store.change(outstanding=named)

    def _note(self, key: tuple[str, str], waits: Outstanding, now_ns: int) -> None:
        stall = self._open.get(key)
        if stall is None:
            self._open[key] = _Open(waits, waits, waits.ios)
            self._status_store.note(EventKind.LOAD, waiting_text((waits,), now_ns), {"outstanding": waits.target})
            return
        stall.most_ios = max(stall.most_ios, waits.ios)
        stall.latest, stall.quiet_since_ns = waits, None

    def _end(self, key: tuple[str, str], now_ns: int) -> None:
        stall = self._open.pop(key)
        returned = stall.quiet_since_ns is not None
        ended_ns = stall.quiet_since_ns or now_ns
        at_end = self._ending_ns is not None and ended_ns > self._ending_ns
        waits = stall.first
        over = Stall(waits.target, stall.most_ios, waits.since_ns, ended_ns, returned, at_end, waits.call)
        if not (waits.call in MANY_CALLS and returned) and len(self._stalls) < _MOST_STALLS:
            self._stalls.append(over)
        self._status_store.note(EventKind.LOAD, over.text, {"returned" if returned else "given_up": waits.target})
