"""A program on a pseudo-terminal of a given size, with its output drained."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path


class Terminal:
    """Runs a command on a pty; the caller owns the process and must `close` it."""

    def __init__(
        self,
        command: Sequence[str],
        columns: int = 160,
        lines: int = 50,
        *,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.output = bytearray()
        self._status: int | None = None
        self.started_ns = time.monotonic_ns()
        variables = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", **(environment or {})}
        self.pid, self._descriptor = self._start(command, variables)
        self.resize(columns, lines)

    def _start(self, command: Sequence[str], environment: Mapping[str, str]) -> tuple[int, int]:
        """Return the id of the process and our end of its terminal."""
        process, descriptor = pty.fork()
        if process == 0:
            signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup of this program is not meant for that one
            os.execvpe(command[0], list(command), environment)
        return process, descriptor

    @property
    def worker(self) -> int:
        """The process that draws and drives the load: the child of the started one."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        return int(children[0]) if children else self.pid

    def resize(self, columns: int, lines: int) -> None:
        """Resize the terminal (the program gets SIGWINCH)."""
        fcntl.ioctl(self._descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def hang_up(self) -> None:
        """Close our end, as a terminal window or a broken connection does."""
        descriptor, self._descriptor = self._descriptor, -1
        os.close(descriptor)

    def gone_after_s(self, limit_s: float) -> float | None:
        """Seconds until the program has ended, without reading its output; None after the limit."""
        started_s = time.monotonic()
        while self.alive():
            if time.monotonic() - started_s > limit_s:
                return None
            time.sleep(0.01)
        return time.monotonic() - started_s

    def press(self, keys: str) -> int:
        """Type keys; returns the monotonic time in ns just before they were written."""
        pressed_ns = time.monotonic_ns()
        os.write(self._descriptor, keys.encode())
        return pressed_ns

    def drain(self, seconds: float, until: bytes | Callable[[bytes], bool] | None = None) -> int | None:
        """Read output for a while; with `until`, return the monotonic ns at which it was seen, or None.

        `until` is found in all output since it was cleared, or decides by each part of the output.
        """
        if self._descriptor < 0:
            time.sleep(seconds)
            return None
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if not select.select([self._descriptor], [], [], left)[0]:
                break
            try:
                chunk = os.read(self._descriptor, 1 << 16)
            except OSError:
                chunk = b""
            if not chunk:
                time.sleep(min(left, 0.01))  # it has ended: who waits for something else is not to turn in a loop
                break
            self.output += chunk
            read_ns = time.monotonic_ns()
            if until is not None and (until in self.output if isinstance(until, bytes) else until(chunk)):
                return read_ns
        return None

    def close(self, timeout_s: float = 15.0) -> int:
        """End the program (SIGTERM, then SIGKILL) if it still runs and return its exit status; may be called again."""
        if self._status is not None:
            return self._status
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self.alive():
                os.kill(self.pid, number)
            deadline = time.monotonic() + timeout_s
            while self.alive() and time.monotonic() < deadline:
                self.drain(0.05)
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._status = self._exit_code()
        return self._status

    def _exit_code(self) -> int:
        """Wait for the end of the process and reap it."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def wait(self, timeout_s: float) -> None:
        """Drain until the program ends or the time is over."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline and self.alive():
            self.drain(0.2)

    def alive(self) -> bool:
        """Whether the program still runs; does not reap it."""
        return self._status is None and not self._has_ended()

    def _has_ended(self) -> bool:
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
