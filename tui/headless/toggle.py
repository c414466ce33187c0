"""A command of the operator between two parts of a preset."""

from __future__ import annotations

import subprocess
import sys

import click

from engine.errors import LunscopeError, StoppedError
from engine.text import safe_text
from tui.headless.signals import EndingSignals

_LOOK_S = 0.05
_END_S = 5.0


def run_toggle(command: str, signals: EndingSignals) -> None:
    """Run a shell command to its end; what it prints goes to stderr.

    Raises:
        LunscopeError: it cannot be run or failed, so that there is nothing to compare.
        StoppedError: a signal came; the command is ended.
    """
    shown = safe_text(command)
    click.echo(f"lunscope: runs {shown}", err=True)
    try:
        process = subprocess.Popen(["/bin/sh", "-c", command], stdin=subprocess.DEVNULL, stdout=sys.stderr.fileno())
    except OSError as error:
        raise LunscopeError(f"--toggle {shown}: {error.strerror}") from None
    while process.poll() is None:
        if signals.wait(_LOOK_S) is not None:
            _end(process)
            raise StoppedError("stopped while --toggle ran")
    if process.returncode:
        raise LunscopeError(f"--toggle {shown}: exit code {process.returncode}: nothing more is measured")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
