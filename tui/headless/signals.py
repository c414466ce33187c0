"""Signals that end a headless command, waited for instead of handled."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Self

_POLL_S = 0.1

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
IMPATIENT = 3
"""Signals after which the process exits at once."""
SAME_S = 0.5
"""Time in which a signal is counted once: one sent to a process group also arrives forwarded."""


class EndingSignals:
    """While entered, SIGINT, SIGTERM and SIGHUP only make `wait` return; what was ignored (nohup) stays ignored.

    The number arrives through a pipe, so that no lock is taken in a handler. Callers of `count` give up stalled storage
    at the second signal; the third ends the process at once: scratch files have no names and sessions are complete
    after every tick. Use it in the main thread.
    """

    def __init__(self) -> None:
        self._read_fd, self._write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._seen: signal.Signals | None = None
        self._arrived = 0
        self._latest: tuple[int, float] = (0, 0.0)
        # Not select(2): with thousands of kept-open counters descriptors go above its 1,023.
        self._arrival = select.poll()
        self._arrival.register(self._read_fd, select.POLLIN)

    def __enter__(self) -> Self:
        self._wakeup_fd = signal.set_wakeup_fd(self._write_fd, warn_on_full_buffer=False)
        caught = [number for number in ENDING if signal.getsignal(number) is not signal.SIG_IGN]
        self._before = {number: signal.signal(number, self._count) for number in caught}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup_fd)
        os.close(self._read_fd)
        os.close(self._write_fd)

    def wait(self, timeout_s: float) -> signal.Signals | None:
        """Wait for a signal; returns the first one, at once if it has already come."""
        if self._seen is None and self._arrival.poll(timeout_s * 1000):
            arrived = (number for number in os.read(self._read_fd, 64) if number in self._before)
            self._seen = next(map(signal.Signals, arrived), None)
        return self._seen

    @property
    def count(self) -> int:
        """Number of signals so far."""
        return self._arrived

    def _count(self, number: int, _frame: FrameType | None) -> None:
        """Check only for the last counted signal: the C handler has written the number into the pipe."""
        now_s = time.monotonic()
        before, self._latest = self._latest, (number, now_s)
        if before[0] == number and now_s - before[1] < SAME_S:
            return
        self._arrived += 1
        if self._arrived == IMPATIENT:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)


@contextmanager
def stop_on_signal(stop: threading.Event) -> Iterator[None]:
    """While entered, a terminating signal sets `stop` instead, from a thread and never from a handler."""
    over = threading.Event()

    def watch(signals: EndingSignals) -> None:
        while not over.is_set():
            if signals.wait(_POLL_S) is not None:
                stop.set()
                return

    with EndingSignals() as signals:
        watcher = threading.Thread(target=watch, args=(signals,), name="lunscope-signals")
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()
