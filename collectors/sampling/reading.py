"""Reading of a collector at one tick: its result, what happens if it fails, and threads for slow ones."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from msgspec import Struct, field

from collectors.model import Histograms, Table
from engine.events import Event, EventKind


class _CpuTime:
    """CPU time of all threads that read in the background, which is part of what the monitor itself costs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clocks: set[int] = set()
        self._ended_ns = 0

    @property
    def used_ns(self) -> int:
        """CPU time so far, of those that have ended, too."""
        with self._lock:
            return self._ended_ns + sum(map(time.clock_gettime_ns, self._clocks))

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count the calling thread while entered, and what it used from then on."""
        clock = time.pthread_getcpuclockid(threading.get_ident())
        with self._lock:
            self._clocks.add(clock)
        try:
            yield
        finally:
            # The thread's clock is invalid after the thread has ended.
            with self._lock:
                self._clocks.remove(clock)
                self._ended_ns += time.thread_time_ns()


BACKGROUND_CPU = _CpuTime()


class BackgroundThread:
    """A daemon thread that runs `body(stop)` from now on until it returns; the body checks the stop flag.

    An error of the body is stored for `check`, so that the owner reports it instead of the interpreter.
    """

    def __init__(self, name: str, body: Callable[[threading.Event], None]) -> None:
        self.stop_flag = threading.Event()
        self._body = body
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name=f"lunscope-{name}", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raise the error that ended the thread.

        Raises:
            RuntimeError: the body has failed; the cause says why.
        """
        if self._failure is not None:
            raise RuntimeError(str(self._failure) or type(self._failure).__name__) from self._failure

    def stop(self, timeout_s: float = 2.0) -> None:
        """Request the body to end and wait for it; may be called twice."""
        self.stop_flag.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def _run(self) -> None:
        with BACKGROUND_CPU.counted():
            try:
                self._body(self.stop_flag)
            except Exception as failure:
                self._failure = failure


class Reading(Struct, frozen=True, eq=False):
    """Tables and histograms by schema name, and events since the previous reading."""

    tables: Mapping[str, Table] = field(default_factory=dict)
    histograms: Mapping[str, Histograms] = field(default_factory=dict)
    events: tuple[Event, ...] = ()


class Collector(Protocol):
    """One reader of counters; called by one thread, once per tick, and expected to return within milliseconds."""

    def read(self) -> Reading:
        """Read now."""

    def close(self) -> None:
        """Release descriptors and threads; may be called twice."""


FIRST_PAUSE_NS = 10_000_000_000
LONGEST_PAUSE_NS = 320_000_000_000


class Guarded:
    """Reads one collector; after a failure it pauses, longer each time, and reports it once."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._name = type(collector).__name__.removesuffix("Collector").lower()
        self._pause_ns = FIRST_PAUSE_NS
        self._resume_ns = 0
        self._failing = False

    def read(self, now_ns: int) -> Reading:
        """Read, or return an empty reading during a pause."""
        if self._failing and now_ns < self._resume_ns:
            return Reading()
        try:  # An error in one collector must not stop the others.
            reading = self._collector.read()
        except Exception as error:
            return self._rest(error, now_ns)
        self._failing, self._pause_ns = False, FIRST_PAUSE_NS
        return reading

    def close(self) -> None:
        """Close the collector."""
        self._collector.close()

    def _rest(self, error: Exception, now_ns: int) -> Reading:
        first = not self._failing
        self._failing, self._resume_ns = True, now_ns + self._pause_ns
        self._pause_ns = min(2 * self._pause_ns, LONGEST_PAUSE_NS)
        if not first:
            return Reading()
        text = f"{self._name}: {error or type(error).__name__}; left out until it can be read again"
        return Reading(events=(Event.now(EventKind.MONITOR, text, collector=self._name),))
