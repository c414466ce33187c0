"""A command of the operator between two parts of a preset."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from typing import IO

from engine.errors import LunscopeError, StoppedError
from engine.helper_process import how_ended
from engine.text import safe_text, short_text

_POLL_S = 0.05
_END_S = 5.0
_MOST_ERROR_BYTES = 65536


def run_command(command: str, is_ended: Callable[[float], bool], output: int) -> None:
    """Run a shell command to its end.

    Args:
        command: for /bin/sh.
        is_ended: waits for at most so many seconds and returns whether the command is to be ended.
        output: file descriptor of what it prints, or subprocess.DEVNULL.

    Raises:
        LunscopeError: it cannot be run or failed, so that there is nothing to compare.
        StoppedError: it was ended.
    """
    shown = safe_text(command)
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                ["/bin/sh", "-c", command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors if output == subprocess.DEVNULL else None,
            )
        except OSError as error:
            raise LunscopeError(f"command {shown!r}: {error.strerror}") from None
        while process.poll() is None:
            if is_ended(_POLL_S):
                _end(process)
                raise StoppedError("stopped while the command ran")
        if process.returncode:
            how = f"{how_ended(process.returncode)}{_last_line(errors)}"
            raise LunscopeError(f"command {shown!r}: {how}: nothing more is measured")


def _last_line(errors: IO[bytes]) -> str:
    """Return the last line that it wrote to stderr where nobody sees that."""
    errors.seek(0)
    lines = errors.read(_MOST_ERROR_BYTES).decode("utf-8", "replace").strip().splitlines()
    return f": {safe_text(short_text(lines[-1], 200))}" if lines else ""


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
