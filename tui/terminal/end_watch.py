"""Ending in time: what ends the program, and what happens if the main thread does not react.

A lost terminal must not leave a load running that nobody can stop. It shows as SIGHUP, as a failed read or write, and
as POLLHUP. The first two need a running event loop. So a thread waits for the third and for the signals, whose numbers
Python's C handler writes into a pipe even while no Python code runs in the main thread.

The thread asks the main thread to quit as the quit key would. If the terminal is lost, it does not wait for that:
load and session are closed at once by separate threads, each with a limit, while the main thread closes the screens;
the load stops issuing and the session is completed. If the main thread has not ended in time (the event loop is stuck,
or an I/O of the load does not return), the process is ended: the kernel detaches BPF programs with their descriptors,
and scratch files have no names, so nothing is left.
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

_Handler = Callable[[int, FrameType | None], object] | int | None
"""What signal.signal takes and returns."""

LEAVING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

GONE_S = 1.7
"""Limit for the whole end after the terminal was lost, or after a second signal."""
FROZEN_S = 5.0
"""Limit for closing the screens after any other signal; the following steps have their own limits."""
CLOSER_S = 0.5
"""How long closing one part may delay the next."""
CLOSED_S = 0.5
"""Time for the main thread after all parts are closed."""
CLOSERS_S = 1.2
"""Limit for all parts, if closing begins only at the end of the time."""


class EndWatch:
    """While entered, watches for the end of the terminal and for signals that end the program.

    Enter it in the main thread. `closers` are called from other threads, possibly twice.
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
        """Exit code of the first end: 128 + the signal number; None if there was none."""
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
            signal.signal(number, self._handler_after(number, handler))
        signal.set_wakeup_fd(self._wakeup_fd)
        os.close(self._read_fd)
        os.close(self._write_fd)

    def _handler_after(self, number: int, before: _Handler) -> _Handler:
        """Let the signal that ended the screens arrive once more, forwarded: what they leave must still be printed."""
        ended_by, ended_s = self._latest
        if number != ended_by:
            return before

        def repeated(number: int, _frame: FrameType | None) -> None:
            if time.monotonic() - ended_s >= SAME_S:
                signal.signal(number, before)
                signal.raise_signal(number)

        return repeated

    def run_under(self, leave: Callable[[int], None]) -> None:
        """From now on call `leave` with the exit code, from the watching thread, instead of raising."""
        with self._lock:
            self._leave, code = leave, self._code
        if code is not None:
            leave(code)

    def left(self) -> None:
        """Note that the screens are closed: from here on only a lost terminal has a limit."""
        with self._lock:
            if not self._gone:
                self._deadline_s = None

    def lose_terminal(self, _reason: str = "") -> None:
        """End the program because the terminal is lost; from any thread."""
        self._end(128 + signal.SIGHUP, gone=True)
        os.write(self._write_fd, b"\0")

    @property
    def is_ending(self) -> bool:
        """Whether the program is to end, even if the thread has not seen the signal yet."""
        return self._signalled or self._code is not None

    def _unwind(self, number: int, _frame: FrameType | None) -> None:
        """Before the screens start, raise; later the thread reads the signal number."""
        self._signalled = True
        if self._leave is None:
            raise SystemExit(128 + number)

    def _run(self) -> None:
        changes = select.poll()
        changes.register(self._read_fd, select.POLLIN)
        changes.register(self._tty.fd, 0)  # Only POLLHUP and POLLERR, which are always reported.
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
            if number not in LEAVING_SIGNALS:
                continue
            now_s = time.monotonic()
            before, self._latest = self._latest, (number, now_s)
            if before[0] == number and now_s - before[1] < SAME_S:
                continue  # Sent to the whole process group: the waiting process forwards it too.
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
        """Give the main thread only a short time to close its screens, which are not visible."""
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
