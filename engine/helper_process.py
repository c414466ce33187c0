"""A process of this package that outlives the one that starts it, whatever ends that; and how it ended, if it did."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import engine
from engine.errors import LunscopeError, words_of
from engine.text import safe_text, short_text

READY = b"ready\n"
"""What it writes once it can do its work."""

_START = "import sys; sys.path.insert(0, sys.argv.pop()); from {module} import main; sys.exit(main())"
_ERROR_BYTES = 65536
_MOST_SHOWN = 200


class HelperProcess:
    """Runs `main` of a module in a session of its own; its stdin ends with this process, after kill -9, too.

    What it says on stderr is kept without blocking it: what a pipe does not hold is lost, never its work.
    """

    def __init__(self, module: str, arguments: Sequence[str], pass_fds: Sequence[int] = ()) -> None:
        """Start it.

        Raises:
            LunscopeError: it cannot be started.
        """
        package = Path(engine.__file__).parent.parent
        read_fd, write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._errors, self._said = os.fdopen(read_fd, "rb", buffering=0), b""
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START.format(module=module), *arguments, str(package)],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=write_fd,
                cwd="/",
                start_new_session=True,
                pass_fds=pass_fds,
            )
        except OSError as error:
            self._errors.close()
            raise LunscopeError(f"{sys.executable} of {module}: {words_of(error)}") from None
        finally:
            os.close(write_fd)

    @property
    def pid(self) -> int:
        """Process of the helper."""
        return self._process.pid

    def is_ready(self) -> bool:
        """Wait until it can do its work; False if it ended before."""
        assert self._process.stdout is not None
        return self._process.stdout.readline() == READY

    def send(self, message: bytes) -> None:
        """Write to its stdin.

        Raises:
            LunscopeError: it has ended.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(message)
        except BrokenPipeError:
            self._process.wait()
            raise LunscopeError(self.ending) from None

    def has_ended(self, timeout_s: float) -> bool:
        """Wait for its end."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def end(self) -> None:
        """End its stdin, which has it finish, and wait for that."""
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()
        self._process.wait()
        self._read_errors()
        self._errors.close()

    @property
    def ending(self) -> str:
        """Say how it ended, with the last line of its stderr, as in `process 812 was killed by SIGKILL`."""
        code = self._process.poll()
        self._read_errors()
        lines = self._said.decode(errors="replace").split("\n")
        words = next((f": {short_text(line.strip(), _MOST_SHOWN)}" for line in reversed(lines) if line.strip()), "")
        return safe_text(f"process {self.pid} {'runs' if code is None else how_ended(code)}{words}")

    def _read_errors(self) -> None:
        if not self._errors.closed and len(self._said) < _ERROR_BYTES:
            self._said += self._errors.read(_ERROR_BYTES) or b""


def how_ended(code: int) -> str:
    """Say how a process ended by its return code as subprocess has it: `was killed by SIGKILL`."""
    return f"ended with status {code}" if code >= 0 else f"was killed by {_name(-code)}"


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
