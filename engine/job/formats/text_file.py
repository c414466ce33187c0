"""Small text files of unchecked content, and locations in them."""

from __future__ import annotations

import os
import select
import stat
from pathlib import Path

from msgspec import Struct

from engine.errors import UsageError, unusable
from engine.job.sizes import human_size
from engine.small_file import FileKindError, read_head
from engine.text import safe_text

_LONGEST_QUOTE = 60


class SourceLocation(Struct, frozen=True):
    """One line of one file."""

    path: str
    line: int

    def error(self, key: str, what: str) -> UsageError:
        """Build the error for a key on this line."""
        return UsageError(f"{self}: {safe_text(key)}: {what}")

    def __str__(self) -> str:
        return f"{safe_text(self.path)}, line {self.line}"


def quoted(text: str) -> str:
    """Quote a value for an error, cut where it is long."""
    cut = text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE] + "..."
    return f"{cut!a}"


MAX_FILE_BYTES = 1024 * 1024
_PIPE_PATIENCE_S = 5.0


def read_text(path: str | Path, what: str = "job file") -> str:
    """Read a whole file or pipe of at most 1 MiB; `what` names it in errors.

    Raises:
        UsageError: it cannot be read, is a device, a silent pipe, too large, or not text in UTF-8.
    """
    shown = safe_text(str(path))
    try:
        mode = Path(path).stat().st_mode
        if stat.S_ISBLK(mode) or stat.S_ISCHR(mode):
            raise UsageError(f"{shown}: not a {what}: it is a device: give it with --target")
        data = _start_of_pipe(path, what) if stat.S_ISFIFO(mode) else read_head(Path(path), MAX_FILE_BYTES + 1)
        text = data.decode("utf-8")
    except OSError as error:
        raise unusable(f"{shown}: cannot read the {what}: {error.strerror}", error) from None
    except FileKindError as error:
        raise UsageError(f"{shown}: not a {what}: {error}") from None
    except ValueError:
        raise UsageError(f"{shown}: not a {what}: it is not text in UTF-8") from None
    if len(data) > MAX_FILE_BYTES:
        raise UsageError(f"{shown}: not a {what}: it is larger than {human_size(MAX_FILE_BYTES)}")
    return text


def _start_of_pipe(path: str | Path, what: str) -> bytes:
    """Read a pipe to its end, or until it is too large; to open one as usual would wait for a writer for ever.

    Raises:
        OSError: it cannot be read.
        UsageError: nothing has come for 5 s.
    """
    data = b""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        while len(data) <= MAX_FILE_BYTES and poll.poll(_PIPE_PATIENCE_S * 1e3):
            try:
                piece = os.read(descriptor, MAX_FILE_BYTES)
            except BlockingIOError:
                continue
            if not piece:
                return data
            data += piece
    finally:
        os.close(descriptor)
    if len(data) > MAX_FILE_BYTES:
        return data
    raise UsageError(
        f"{safe_text(str(path))}: nothing has come from this pipe for {_PIPE_PATIENCE_S:g} s: write the {what} to it, "
        "or give a file"
    )
