"""The threads in which the blocking calls of the event loop run, and the CPU time they take."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager


class CallPool:
    """An executor that lists its threads, so that their CPU time can be read."""

    def __init__(self, max_threads: int) -> None:
        self.executor = ThreadPoolExecutor(max_threads, thread_name_prefix="lunscope-aio", initializer=self._enter)
        self._lock = threading.Lock()
        self._clocks: list[int] = []
        self._finished_ns = 0

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count the calling thread's CPU time too, until it leaves the block."""
        clock = time.pthread_getcpuclockid(threading.get_ident())
        with self._lock:
            self._clocks.append(clock)
        try:
            yield
        finally:
            with self._lock:
                self._clocks.remove(clock)
                self._finished_ns += time.clock_gettime_ns(clock)

    def _enter(self) -> None:
        with self._lock:
            self._clocks.append(time.pthread_getcpuclockid(threading.get_ident()))

    def cpu_ns(self) -> int:
        """CPU time used by the calls so far."""
        with self._lock:
            return self._finished_ns + sum(map(_used_ns, self._clocks))

    def close(self) -> None:
        """Join the threads; their CPU time stays known."""
        with self._lock:
            self._finished_ns += sum(map(_used_ns, self._clocks))
            self._clocks.clear()
        self.executor.shutdown()


def _used_ns(clock: int) -> int:
    """CPU time of a thread; 0 of one that has ended at interpreter exit and has no clock any more (EINVAL)."""
    try:
        return time.clock_gettime_ns(clock)
    except OSError:
        return 0
