"""A command of the operator between two parts of a preset."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

from engine.errors import LunscopeError, StoppedError
from engine.text import safe_text

_POLL_S = 0.05
_END_S = 5.0


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
    try:
        process = subprocess.Popen(
            ["/bin/sh", "-c", command], stdin=subprocess.DEVNULL, stdout=output, stderr=_errors(output)
        )
    except OSError as error:
        raise LunscopeError(f"--toggle {shown}: {error.strerror}") from None
    while process.poll() is None:
        if is_ended(_POLL_S):
            _end(process)
            raise StoppedError("stopped while --toggle ran")
    if process.returncode:
        raise LunscopeError(f"--toggle {shown}: exit code {process.returncode}: nothing more is measured")


def _errors(output: int) -> int | None:
    return subprocess.DEVNULL if output == subprocess.DEVNULL else None


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
