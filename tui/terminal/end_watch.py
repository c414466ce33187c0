"""Leaving in time: what ends the program, and what is done when the main thread does not follow.

A terminal that goes away must not leave a load running that nobody can stop. Three ways say that it went: SIGHUP, a
read or write that fails, and POLLHUP. The first two need an event loop that runs. So a thread waits for the third and
for the signals, whose numbers Python's C handler writes into a pipe even while no Python code runs in the main thread.

The thread asks the main thread to leave as the quit key would. If the terminal has gone, it does not wait for that:
what must not be left open is closed at once by threads of its own, each part with a limit, while the main thread takes
its screens down; the load stops issuing and the session is completed. If the main thread has not come to its end when
the time is over (the event loop is stuck, or an I/O of the load does not return), the process is ended: the kernel
detaches BPF programs with their descriptors, and scratch files have no names, so nothing stays of them.
"""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Callable, Sequence
from types import FrameType, TracebackType
from typing import Self

from tui.headless.leaving import end_process
from tui.headless.signals import SAME_S
from tui.terminal.tty import Tty

LEAVING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

GONE_S = 1.7
"""How long everything may take once the terminal has gone, or after a second signal."""
FROZEN_S = 5.0
"""How long it may take to leave the screens after another signal; what comes then has limits of its own."""
CLOSER_S = 0.5
"""How long the next part waits for one that is being closed."""
CLOSED_S = 0.5
"""What the main thread gets once all parts are closed and nobody sees any more what it still does."""
CLOSERS_S = 1.2
"""How long all parts may take, where nobody has begun with them before the time was over."""


class EndWatch:
    """While entered, watches for the end of the terminal and for signals that end the program.

    Enter it in the main thread. `closers` are called from other threads, and must bear being called twice.
    """

    def __init__(self, tty: Tty, closers: Sequence[Callable[[], None]]) -> None:
        self._tty = tty
        self._closers = closers
        self._lock = threading.Lock()
        self._leave: Callable[[int], None] | None = None
        self._deadline_s: float | None = None
        self._gone = False
        self._code: int | None = None
        self._signalled = False
        self._latest: tuple[int, float] = (0, 0.0)
        self._over = threading.Event()
        self._closing = threading.Thread(target=self._close_all, name="lunscope-closing", daemon=True)

    @property
    def code(self) -> int | None:
        """Exit code of what ended the program first: 128 and the signal's number; None if nothing did."""
        return self._code

    def __enter__(self) -> Self:
        self._read_fd, self._write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._wakeup_fd = signal.set_wakeup_fd(self._write_fd, warn_on_full_buffer=False)
        self._before = {number: signal.signal(number, self._unwind) for number in LEAVING_SIGNALS}
        self._thread = threading.Thread(target=self._run, name="lunscope-end", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._over.set()
            os.write(self._write_fd, b"\0")
        self._thread.join()
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup_fd)
        os.close(self._read_fd)
        os.close(self._write_fd)

    def run_under(self, leave: Callable[[int], None]) -> None:
        """From now on have `leave` called with the exit code, from the watching thread, instead of an exception."""
        with self._lock:
            self._leave, code = leave, self._code
        if code is not None:
            leave(code)

    def left(self) -> None:
        """Note that the screens were left: only the terminal's end has a limit from here on."""
        with self._lock:
            if not self._gone:
                self._deadline_s = None

    def lose_terminal(self, _reason: str = "") -> None:
        """Have the program end because the terminal has gone; from any thread."""
        self._end(128 + signal.SIGHUP, gone=True)
        os.write(self._write_fd, b"\0")

    @property
    def is_ending(self) -> bool:
        """Whether the program is to end, be it that the thread has not seen the signal yet."""
        return self._signalled or self._code is not None

    def _unwind(self, number: int, _frame: FrameType | None) -> None:
        """Before there are screens, unwind like an exception; under them the thread has the number already."""
        self._signalled = True
        if self._leave is None:
            raise SystemExit(128 + number)

    def _run(self) -> None:
        changes = select.poll()
        changes.register(self._read_fd, select.POLLIN)
        changes.register(self._tty.fd, 0)  # Nothing but POLLHUP and POLLERR, which are always reported.
        while not self._over.is_set():
            for fd, _what in changes.poll(self._left_ms()):
                if fd == self._tty.fd:
                    changes.unregister(fd)
                    self._end(128 + signal.SIGHUP, gone=True)
                else:
                    self._take_signals()
            if self._is_late():
                self._end_process()

    def _take_signals(self) -> None:
        for number in os.read(self._read_fd, 256):
            now_s = time.monotonic()
            before, self._latest = self._latest, (number, now_s)
            if before[0] == number and now_s - before[1] < SAME_S:
                continue  # Sent to the whole process group: it comes from the waiting process too.
            if number in LEAVING_SIGNALS:
                self._end(128 + number, gone=number == signal.SIGHUP)

    def _end(self, code: int, *, gone: bool) -> None:
        with self._lock:
            first = self._code is None
            if first:
                self._code = code
            if first or not self._gone:
                self._deadline_s = time.monotonic() + (FROZEN_S if first and not gone else GONE_S)
            was_gone, self._gone = self._gone, self._gone or gone
            leave = self._leave
        if gone and not was_gone:
            self._closing.start()
        if gone and self._tty.is_hung_up:
            self._tty.silence_streams()
        if first and leave is not None:
            leave(code)

    def _left_ms(self) -> float | None:
        deadline_s = self._deadline_s
        return None if deadline_s is None else max(0.0, (deadline_s - time.monotonic()) * 1000)

    def _is_late(self) -> bool:
        deadline_s = self._deadline_s
        return deadline_s is not None and time.monotonic() >= deadline_s and not self._over.is_set()

    def _close_all(self) -> None:
        closings = [threading.Thread(target=close, daemon=True) for close in self._closers]
        for closing in closings:
            closing.start()
            closing.join(CLOSER_S)
        if self._tty.is_hung_up and not any(closing.is_alive() for closing in closings):
            self._hurry()

    def _hurry(self) -> None:
        """Leave the main thread only a little time to take its screens down, which nobody sees."""
        with self._lock:
            if self._deadline_s is not None and not self._over.is_set():
                self._deadline_s = min(self._deadline_s, time.monotonic() + CLOSED_S)
                os.write(self._write_fd, b"\0")

    def _end_process(self) -> None:
        if self._closing.ident is None:
            self._closing.start()
            self._closing.join(CLOSERS_S)
        self._tty.restore()
        end_process(self._code or 1)
