"""A program on a pseudo-terminal of a given size, as an operator would have it, with its output drained."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Sequence


class Terminal:
    """Runs a command on a pty; the caller owns the process and must `close` it."""

    def __init__(self, command: Sequence[str], columns: int = 160, lines: int = 50) -> None:
        self.output = bytearray()
        self.started_ns = time.monotonic_ns()
        self.pid, self._descriptor = pty.fork()
        if self.pid == 0:
            environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
            os.execvpe(command[0], list(command), environment)
        fcntl.ioctl(self._descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def press(self, keys: str) -> int:
        """Type keys; returns the monotonic time in ns just before they were written."""
        pressed_ns = time.monotonic_ns()
        os.write(self._descriptor, keys.encode())
        return pressed_ns

    def drain(self, seconds: float, until: bytes | None = None) -> int | None:
        """Read output for a while; with `until`, return the monotonic ns at which it was seen, or None."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if not select.select([self._descriptor], [], [], left)[0]:
                break
            try:
                chunk = os.read(self._descriptor, 1 << 16)
            except OSError:
                break
            if not chunk:
                break
            self.output += chunk
            if until is not None and until in self.output:
                return time.monotonic_ns()
        return None

    def close(self, timeout_s: float = 15.0) -> int:
        """End the program (SIGTERM, then SIGKILL) if it still runs and return its exit status."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self.alive():
                os.kill(self.pid, number)
            deadline = time.monotonic() + timeout_s
            while self.alive() and time.monotonic() < deadline:
                self.drain(0.05)
        os.close(self._descriptor)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def wait(self, timeout_s: float) -> None:
        """Drain until the program ends by itself or the time is over."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline and self.alive():
            self.drain(0.2)

    def alive(self) -> bool:
        """Whether the program still runs; does not reap it."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
