"""A file of JSON lines that survives a crash: each is on the disk once it is written; a line cut off is dropped."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from msgspec import Struct, field

from engine.errors import LunscopeError, UsageError, unusable, words_of
from engine.strict_json import JsonError, load_json_object

MOST_BYTES = 256 << 20
"""More than the trials of the largest sweep, with the devices under its targets."""
_MODE = 0o600


class LineFile(Struct):
    """Trials of one search on disk; the owner appends, nobody else writes."""

    path: Path
    schema: str
    identity: str
    """Of what the trials belong to; a file of anything else is refused."""
    lines: list[bytes] = field(default_factory=list)
    """Read from it, without the head."""
    _fd: int = -1

    def __enter__(self) -> Self:
        """Open or create it and read what is there.

        Raises:
            UsageError: it is of another sweep, or not of a sweep at all.
            LunscopeError: it cannot be opened.
        """
        try:
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, _MODE)
            self._read()
        except OSError as error:
            raise unusable(f"{self.path}: {words_of(error)}", error) from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._fd)

    def append(self, document: Mapping[str, object]) -> None:
        """Write one line, and make sure that it is on the disk.

        Raises:
            LunscopeError: it cannot be written.
        """
        line = json.dumps(document, allow_nan=False).encode() + b"\n"
        try:
            if os.write(self._fd, line) != len(line):
                raise LunscopeError(f"{self.path}: the disk is full: the sweep can go on from here later")
            os.fdatasync(self._fd)
        except OSError as error:
            raise LunscopeError(f"{self.path}: {words_of(error)}") from None

    def damaged(self, number: int) -> UsageError:
        """Make the error for a line that cannot be read, counted from 1 after the head."""
        return UsageError(f"{self.path}: line {number + 1} is damaged: remove it, or give another --trials")

    def _read(self) -> None:
        size = os.fstat(self._fd).st_size
        if size > MOST_BYTES:
            raise UsageError(f"{self.path}: larger than any sweep: give another --trials")
        data = os.pread(self._fd, size, 0)
        whole = data[: data.rfind(b"\n") + 1]
        lines = whole.split(b"\n")[:-1]
        if not data:
            self.append({"schema": self.schema, "sweep": self.identity})
            return
        self._check_head(lines)
        self.lines = lines[1:]
        if len(whole) < len(data):
            os.ftruncate(self._fd, len(whole))

    def _check_head(self, lines: list[bytes]) -> None:
        head = parsed(lines[0]) if lines else {}
        if head.get("schema") != self.schema:
            raise UsageError(f"{self.path}: not a file of a sweep: give another --trials")
        if head.get("sweep") != self.identity:
            raise UsageError(f"{self.path}: of a sweep with other axes or another job: give another --trials")


class KeptLines(ABC):
    """What is kept in such a file: opened, read and closed with it."""

    def __init__(self, path: Path, schema: str, identity: str) -> None:
        self.path = path
        self._file = LineFile(path, schema, identity)

    @abstractmethod
    def read(self) -> None:
        """Read the lines; called once it is open.

        Raises:
            UsageError: a line is damaged.
        """

    def __enter__(self) -> Self:
        """Open or create it and read what is there; a line that was cut off is dropped.

        Raises:
            UsageError: it is of something else, or a line is damaged.
            LunscopeError: it cannot be opened.
        """
        with ExitStack() as opened:
            opened.enter_context(self._file)
            self.read()
            self._opened = opened.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.close()


def parsed(line: bytes) -> dict[str, Any]:
    """Read one line; empty where it is no JSON object."""
    try:
        return load_json_object(line)
    except JsonError:
        return {}
