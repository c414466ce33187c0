"""Attaching a tracer, of this process or of the probe helper, and attaching again in a thread after a failure."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from collectors.exact.probe.client import connect, helper_path
from collectors.exact.tracer import Tracer
from collectors.sampling.reading import BackgroundThread
from engine import _native
from engine.errors import LunscopeError, words_of
from engine.events import Event, EventKind

_HELPER = "or have root start `lunscope probe`"


def refusal_of(procfs: str, sysfs: str) -> str:
    """Return why exact time is unavailable, and the fix; empty if it is available, directly or by the helper."""
    return "" if helper_path().is_socket() else full_refusal(procfs, sysfs)


def full_refusal(procfs: str, sysfs: str) -> str:
    """Return why this process cannot attach, and the fix: the probe helper where only rights are missing."""
    refusal = _native.tracer_refusal(procfs, sysfs)
    helps = refusal and not _native.tracer_refusal(procfs, sysfs, rights=False)
    return f"{refusal}; {_HELPER}" if helps else refusal


def open_tracer(procfs: str, sysfs: str) -> Tracer:
    """Attach, which takes 0.1 s, or connect to the probe helper if this process has no right to attach.

    Raises:
        LunscopeError: this host or this process's rights do not allow it, and no helper is available.
        OSError: the kernel refuses a step; the text names it.
    """
    refusal = _native.tracer_refusal(procfs, sysfs)
    if not refusal:
        return _native.BlockTracer(sysfs)
    path = helper_path()
    if not path.is_socket():
        raise LunscopeError(full_refusal(procfs, sysfs))
    try:
        return connect(path)
    except OSError as error:
        raise LunscopeError(f"{refusal}; the probe helper at {path} does not answer: {error}") from error


FIRST_PAUSE_S = 5.0
LONGEST_PAUSE_S = 300.0
"""First pause between attempts, since a probe helper may be started later; it grows with each failure."""


class TracerSupervisor:
    """A thread that opens a tracer; `tracer` is None until it is attached and after it failed."""

    def __init__(self, open_tracer: Callable[[], Tracer], first_pause_s: float = FIRST_PAUSE_S) -> None:
        self._open = open_tracer
        self._first_pause_s = first_pause_s
        self._changed = threading.Condition()
        self._events: list[Event] = []
        self._reported = ""
        self._attempts = 0
        self._closed = self._rests = False
        self.tracer: Tracer | None = None
        self.refusal = ""
        """Why there is no tracer, in one line; empty before the first attempt ends and while there is one."""
        self._thread: BackgroundThread | None = None

    def start(self) -> None:
        """Start the thread; once."""
        self._thread = BackgroundThread("tracer", self._run)

    def wait(self, timeout_s: float) -> bool:
        """Wait until the first attempt ends; return whether there is a tracer."""
        with self._changed:
            self._changed.wait_for(lambda: self._attempts > 0, timeout_s)
            return self.tracer is not None

    def take_events(self) -> tuple[Event, ...]:
        """Return and clear the events since the last call."""
        with self._changed:
            events, self._events = tuple(self._events), []
        return events

    def lost(self, reason: str) -> None:
        """Drop the failed tracer and open another one soon."""
        with self._changed:
            tracer, self.tracer = self.tracer, None
            self._refuse(reason)
            self._changed.notify_all()
        if tracer is not None:
            tracer.close()

    @property
    def rests(self) -> bool:
        """Whether there is no tracer because none is wanted for now."""
        return self._rests

    def rest(self, reason: str) -> None:
        """Detach, and attach no more until `resume`."""
        with self._changed:
            self._rests = True
        self.lost(reason)

    def resume(self) -> None:
        """Attach again."""
        with self._changed:
            self._rests = False
            self._changed.notify_all()

    def say(self, text: str) -> None:
        """Report an event."""
        with self._changed:
            self._report(text)

    def close(self) -> None:
        """Detach and stop the thread; may be called twice."""
        with self._changed:
            self._closed = True
            if self._thread is not None:
                self._thread.stop_flag.set()
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.stop()
        with self._changed:
            tracer, self.tracer = self.tracer, None
        if tracer is not None:
            tracer.close()

    def _run(self, stop: threading.Event) -> None:
        pause_s = self._first_pause_s
        while not stop.is_set():
            with self._changed:
                self._changed.wait_for(lambda: not self._rests or stop.is_set())
            if stop.is_set():
                return
            if self._attempt():
                pause_s = self._first_pause_s
                with self._changed:
                    self._changed.wait_for(lambda: self.tracer is None or stop.is_set())
                if self._rests:
                    continue
            if stop.wait(pause_s):
                return
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _attempt(self) -> bool:
        started_s = time.monotonic()
        try:
            tracer = self._open()
        except (OSError, LunscopeError) as error:
            with self._changed:
                self._attempts += 1
                self._refuse(words_of(error))
                self._changed.notify_all()
            return False
        took_ms = 1e3 * (time.monotonic() - started_s)
        with self._changed:
            self._attempts += 1
            if not self._closed and not self._rests:
                self.tracer, self.refusal, self._reported = tracer, "", ""
                self._report(f"exact time: block tracepoints are watched, ready after {took_ms:.0f} ms")
            self._changed.notify_all()
        if self.tracer is not tracer:
            tracer.close()
        return True

    def _refuse(self, reason: str) -> None:
        """Report a reason once, however often it repeats."""
        self.refusal = reason
        if reason != self._reported:
            self._reported = reason
            self._report(f"no exact time: {reason}")

    def _report(self, text: str) -> None:
        self._events.append(Event.now(EventKind.MONITOR, text))
