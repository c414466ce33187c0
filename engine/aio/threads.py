"""The threads in which blocking calls run, with the CPU time that they take."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path


class CallThreads:
    """An executor, and the thread of the event loop."""

    def __init__(self, most: int) -> None:
        self.executor = ThreadPoolExecutor(most, thread_name_prefix="lunscope-aio", initializer=self.enter)
        self._clocks: dict[int, int] = {}
        self._ended: tuple[int, int | None] | None = None

    def enter(self) -> None:
        """Count the calling thread until `close`."""
        self._clocks[threading.get_native_id()] = time.pthread_getcpuclockid(threading.get_ident())

    def times_ns(self) -> tuple[int, int | None]:
        """CPU time, and how long threads were ready and waited for a processor; None where that is not counted."""
        if self._ended is not None:
            return self._ended
        used_ns, waited_ns = 0, 0
        for thread, clock in tuple(self._clocks.items()):
            # A thread that ended as the interpreter exits has no clock any more (EINVAL).
            with suppress(OSError):
                used_ns += time.clock_gettime_ns(clock)
                waited_ns += _waited_ns(thread)
        return used_ns, waited_ns if Path("/proc/self/schedstat").exists() else None

    def close(self) -> None:
        """Join the threads of the executor; the times stay known."""
        self._ended = self.times_ns()
        self.executor.shutdown()


def _waited_ns(thread: int) -> int:
    """Wait of a thread on a run queue: the second number of schedstat (sched-stats.rst of the kernel)."""
    return int(Path(f"/proc/self/task/{thread}/schedstat").read_text(encoding="ascii").split()[1])
