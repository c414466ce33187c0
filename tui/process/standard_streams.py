"""Standard input, output and error as the program needs them: open, with a name in their errors."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from typing import TextIO

import click

from engine.errors import UsageError
from engine.text import safe_text

OUTPUT_NAME = "standard output"
_MODES = (os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)
"""/dev/null opened read-only: writing to a standard output that the caller closed is then an error."""
_PROGRESS_CELLS = 72


def say(line: str) -> None:
    """Say something on stderr, in a line of its own."""
    click.echo(f"lunscope: {safe_text(line)}", err=True)


def show_progress(text: str) -> None:
    """Show one line on stderr in place of the one before, on a terminal only."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{safe_text(text):<{_PROGRESS_CELLS}}\r")
        sys.stderr.flush()


def prepare_streams() -> None:
    """Open the standard streams that the caller closed, and name standard output in its errors.

    The next open gets the lowest free descriptor: printed text would go into a session file or a device.
    """
    for descriptor, mode in enumerate(_MODES):
        try:
            os.fstat(descriptor)
        except OSError:
            _open_null(descriptor, mode)
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 a descriptor, open to the end
    sys.stdout = _with_raw(sys.stdout, sys.__stdout__, _NamedOutput)
    sys.stderr = _with_raw(sys.stderr, sys.__stderr__, _SilentErrors)


def require_terminal(instead: str) -> None:
    """Require a terminal on stdin; the screens are drawn there, even if stdout and stderr are redirected.

    Raises:
        UsageError: input is a pipe or a file; the text names what works there.
    """
    if not (sys.stdin is not None and sys.stdin.isatty()):
        raise UsageError(f"no terminal here: use {instead}")


def drop_output() -> None:
    """Redirect standard output to /dev/null, so that Python does not retry a failed flush at exit."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def _open_null(descriptor: int, mode: int) -> None:
    opened = os.open(os.devnull, mode)
    if opened != descriptor:
        os.dup2(opened, descriptor)
        os.close(opened)


class _NamedOutput(io.FileIO):
    def write(self, data: bytes) -> int | None:  # type: ignore[override] # what a buffer writes
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            reason = "it is closed" if error.errno == errno.EBADF else error.strerror
            raise OSError(error.errno, reason, OUTPUT_NAME) from None


class _SilentErrors(io.FileIO):
    """Standard error: a failed write cannot be reported, and is ignored."""

    def write(self, data: bytes) -> int | None:  # type: ignore[override] # what a buffer writes
        try:
            return super().write(data)
        except OSError:
            return len(data)


def _with_raw(stream: TextIO | None, original: TextIO | None, kind: type[io.FileIO]) -> TextIO:
    """Return a stream over the same descriptor; a stream that tests or callers replaced is left alone."""
    if stream is not None and (stream is not original or not isinstance(stream, io.TextIOWrapper)):
        return stream
    descriptor = (1 if kind is _NamedOutput else 2) if stream is None else stream.fileno()
    if stream is not None:
        stream.flush()
    raw = kind(descriptor, "w", closefd=False)
    raw.name = "<stdout>" if kind is _NamedOutput else "<stderr>"
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding="utf-8" if stream is None else stream.encoding,
        errors="backslashreplace" if stream is None else stream.errors,
        line_buffering=stream is None or bool(getattr(stream, "line_buffering", False)),
        write_through=False,
    )
