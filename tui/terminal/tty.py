"""The terminal device, reopened so that our file status flags do not affect other programs."""

from __future__ import annotations

import fcntl
import os
import re
import select
import struct
import sys
import termios
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from msgspec import Struct

from engine.errors import UsageError

_TIOCGDEV = 0x80045432
"""Device number of a terminal, whatever name it was opened by (include/uapi/asm-generic/ioctls.h)."""
_FALLBACK_SIZE = (80, 24)
"""Size of terminals that do not know theirs, such as serial lines."""
_READ_BYTES = 4096

_LFLAG, _IFLAG, _CC = 3, 0, 6
"""Positions in what termios.tcgetattr returns."""


class Tty:
    """A non-blocking descriptor of the terminal.

    O_NONBLOCK belongs to the open file description, which stdin shares with the shell that started us: the terminal
    is reopened, so that the flag is ours alone. If it cannot be opened (it belongs to another user and is not our
    controlling terminal), stdin's description is used, and its flags are restored at the end.
    """

    def __init__(self, fd: int, *, shared: bool = False) -> None:
        self.fd = fd
        self._device = _device(fd)
        self._flags_before = fcntl.fcntl(fd, fcntl.F_GETFL) if shared else None
        self._attributes_before: list[Any] | None = None
        if shared:
            os.set_blocking(fd, False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def size(self) -> tuple[int, int]:
        """Current columns and lines."""
        try:
            columns, lines = os.get_terminal_size(self.fd)
        except OSError:
            return _FALLBACK_SIZE
        return (columns, lines) if columns and lines else _FALLBACK_SIZE

    def make_raw(self) -> None:
        """Set raw mode: no echo, no line editing, no signals from Ctrl-C and Ctrl-Z.

        Raises:
            termios.error: the terminal has gone. From the background the kernel stops the process (SIGTTOU).
        """
        attributes = termios.tcgetattr(self.fd)
        if self._attributes_before is None:
            self._attributes_before = [*attributes[:_CC], list(attributes[_CC])]
        attributes[_LFLAG] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG)
        attributes[_IFLAG] &= ~(termios.IXON | termios.IXOFF | termios.ICRNL | termios.INLCR | termios.IGNCR)
        attributes[_CC][termios.VMIN] = 1
        attributes[_CC][termios.VTIME] = 0
        termios.tcsetattr(self.fd, termios.TCSANOW, attributes)

    def restore(self) -> None:
        """Restore the modes from before `make_raw`, and discard unread input."""
        if self._attributes_before is None:
            return
        before, self._attributes_before = self._attributes_before, None
        with suppress(termios.error):  # It is lost: its modes no longer matter.
            # Not TCSAFLUSH: that waits until the terminal has read all output.
            termios.tcsetattr(self.fd, termios.TCSANOW, before)
            termios.tcflush(self.fd, termios.TCIFLUSH)

    @property
    def is_foreground(self) -> bool:
        """Whether our process group is in the foreground."""
        try:
            return os.tcgetpgrp(self.fd) == os.getpgrp()
        except OSError:
            return True  # Not our controlling terminal: there is no job control on it.

    @property
    def is_hung_up(self) -> bool:
        """Whether the terminal is lost (POLLHUP)."""
        state = select.poll()
        state.register(self.fd, 0)
        return bool(state.poll(0))

    def takes_output(self, timeout_s: float) -> bool:
        """Whether the terminal is writable within this time."""
        readiness = select.poll()
        readiness.register(self.fd, select.POLLOUT)
        states = readiness.poll(timeout_s * 1000)
        return bool(states) and states[0][1] == select.POLLOUT

    def silence_streams(self) -> None:
        """Redirect stdout and stderr to /dev/null where they are this terminal.

        For a lost terminal, where writing fails, or one that reads nothing, where writing blocks for ever.
        """
        null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        for fd in (1, 2):
            with suppress(OSError):
                if os.fstat(fd).st_rdev == self._device:
                    os.dup2(null, fd)
        os.close(null)

    def drop_input_until(self, wanted: re.Pattern[bytes], timeout_s: float) -> bool:
        """Discard input until it contains `wanted`; returns whether that came in time."""
        deadline_s, tail = time.monotonic() + timeout_s, b""
        arrival = select.poll()
        arrival.register(self.fd, select.POLLIN)
        while (left_s := deadline_s - time.monotonic()) > 0:
            if not arrival.poll(left_s * 1000):
                return False
            try:
                data = os.read(self.fd, _READ_BYTES)
            except BlockingIOError:
                continue
            except OSError:
                return False
            if not data:
                return False
            tail = (tail + data)[-_READ_BYTES:]
            if wanted.search(tail):
                return True
        return False

    def close(self) -> None:
        """Close the descriptor; may be called twice."""
        if self.fd < 0:
            return
        self.restore()
        if self._flags_before is not None:
            fcntl.fcntl(self.fd, fcntl.F_SETFL, self._flags_before)
        fd, self.fd = self.fd, -1
        os.close(fd)


def open_terminal() -> Tty:
    """Reopen the terminal that stdin is.

    Raises:
        UsageError: stdin is no terminal.
    """
    try:
        stdin = sys.__stdin__.fileno() if sys.__stdin__ is not None else -1
        device = _device(stdin)
    except (OSError, ValueError):
        raise UsageError("no terminal here: stdin must be one") from None
    # /dev/tty first: after su(1) only it may be opened. In a container only the second may have a name.
    for path in ("/dev/tty", f"/proc/self/fd/{stdin}"):
        try:
            fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError:
            continue
        if _device(fd) == device:
            return Tty(fd)
        os.close(fd)
    return Tty(fcntl.fcntl(stdin, fcntl.F_DUPFD_CLOEXEC, 3), shared=True)


def _device(fd: int) -> int:
    """Device number of a terminal; raises OSError for anything else."""
    return int(struct.unpack("I", fcntl.ioctl(fd, _TIOCGDEV, bytes(4)))[0])


def _nothing(*_arguments: object) -> None:
    pass


class TerminalUse(Struct, frozen=True):
    """The terminal and its callbacks, which run in the event loop."""

    tty: Tty
    lose: Callable[[str], None]
    """The terminal is lost, for this reason."""
    is_ending: Callable[[], bool]
    """Whether a signal or hangup ends the program: no replies are awaited."""
    before_stop: Callable[[], None] = _nothing
    """The process is about to be stopped by Ctrl-Z."""
    after_stop: Callable[[float | None], None] = _nothing
    """Called when it continued, with the seconds that it was stopped; None after SIGSTOP."""
