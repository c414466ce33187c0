"""I/Os and system calls that do not complete in time: named while a load waits for them, and in its result."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from msgspec import Struct

from engine.text import safe_text

NAMED_AFTER_S = 1.0
"""How long an I/O may be outstanding before it is named: a slow disk answers within that, one that stalls does not."""


class Outstanding(Struct, frozen=True):
    """I/Os of one target that have not completed."""

    target: str
    ios: int
    since_ns: int
    """Time at which the oldest was issued, on the monotonic clock."""
    call: str = ""
    """What waits, where it is none of the load's own I/Os: the call open, fsync or close, a scan or check."""

    def oldest_s(self, now_ns: int | None = None) -> float:
        """How long the oldest has been outstanding."""
        return max((time.monotonic_ns() if now_ns is None else now_ns) - self.since_ns, 0) / 1e9

    @property
    def what(self) -> str:
        """As in "8 I/Os on /dev/sdb", or "close of /dev/sdb"."""
        if self.call:
            return f"{self.call} of {safe_text(self.target)}"
        return f"{self.ios:,} I/O{'' if self.ios == 1 else 's'} on {safe_text(self.target)}"


class Stall(Struct, frozen=True):
    """A stall: I/Os of one target were outstanding for longer than NAMED_AFTER_S."""

    target: str
    ios: int
    """The most that were named at one time."""
    since_ns: int
    """Time at which the oldest was issued, on the monotonic clock."""
    ended_ns: int
    """Time from which none of them was outstanding, or at which they were given up."""
    returned: bool
    """Whether all completed."""
    at_end: bool = False
    """Whether it outlasted the load."""
    call: str = ""
    """Call, as in Outstanding."""

    @property
    def lasted_s(self) -> float:
        """How long the oldest was outstanding."""
        return max(self.ended_ns - self.since_ns, 0) / 1e9

    @property
    def text(self) -> str:
        """As in "8 I/Os on /dev/sdb came back after 9.8 s"."""
        what = Outstanding(self.target, self.ios, self.since_ns, self.call).what
        if not self.returned:
            return f"{what}: given up after {self.lasted_s:.1f} s"
        return f"{what} {'returned' if self.call else 'came back'} after {self.lasted_s:.1f} s"


def waiting_text(waits: Iterable[Outstanding], now_ns: int | None = None) -> str:
    """As in "waiting for 8 I/Os on /dev/sdb, oldest for 2.1 s"; empty where nothing is outstanding."""
    parts = (f"{each.what}, oldest for {each.oldest_s(now_ns):.1f} s" for each in waits)
    text = "; ".join(parts)
    return f"waiting for {text}" if text else ""


def short_text(waits: Sequence[Outstanding], now_ns: int | None = None) -> str:
    """As in "8 I/Os waiting 2.1 s", for narrow columns; empty where nothing is outstanding."""
    if not waits:
        return ""
    oldest_s = max(each.oldest_s(now_ns) for each in waits)
    ios = sum(each.ios for each in waits if not each.call)
    return f"{f'{ios:,} I/O' + ('' if ios == 1 else 's') if ios else waits[0].call} waiting {oldest_s:.1f} s"


def given_up_text(waits: Iterable[Outstanding]) -> str:
    """As in "8 I/Os on /dev/sdb never came back"; empty where nothing is outstanding."""
    parts = ", ".join(each.what for each in waits)
    return f"{parts} never came back" if parts else ""


def outstanding_document(waits: Iterable[Outstanding], start_ns: int, now_ns: int) -> list[dict[str, object]]:
    """Make the section `outstanding` of a run's document; `start_ns` is when the run began, 0 if it never did."""
    return [
        {
            "target": each.target,
            "call": each.call or "io",
            "ios": each.ios,
            "since_s": round((each.since_ns - start_ns) / 1e9, 3) if start_ns else None,
            "oldest_s": round(each.oldest_s(now_ns), 3),
        }
        for each in waits
    ]


def stalls_document(stalls: Iterable[Stall], start_ns: int) -> list[dict[str, object]]:
    """Make the section `stalls` of a run's document; `start_ns` is when the run began."""
    return [
        {
            "target": stall.target,
            "call": stall.call or "io",
            "ios": stall.ios,
            "since_s": round((stall.since_ns - start_ns) / 1e9, 3),
            "lasted_s": round(stall.lasted_s, 3),
            "returned": stall.returned,
            "at_end": stall.at_end,
        }
        for stall in stalls
    ]


MANY_CALLS = frozenset({"open", "sampling", "scan", "check"})
"""Each is all the calls that open, read or check the targets, or read what processes use, which take long with many."""
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
        """Return calls that have not returned for a time, by what they are on."""
        now_ns = time.monotonic_ns()
        found: dict[tuple[str, str], list[int]] = {}
        with self._lock:
            for name, call, since_ns in self._begun.values():
                least_s = max(at_least_s, _MANY_CALLS_S) if call in MANY_CALLS and at_least_s else at_least_s
                if now_ns - since_ns >= least_s * 1e9:
                    found.setdefault((name, call), []).append(since_ns)
        return tuple(Outstanding(name, len(begun), min(begun), call) for (name, call), begun in found.items())
