"""Small files that a person or lunscope itself wrote, at a place where anything may be."""

from __future__ import annotations

import os
import stat
from pathlib import Path

MOST_BYTES = 1 << 20


class FileKindError(ValueError):
    """What is there is no small regular file; the message says what it is."""


def read_small(path: Path, most_bytes: int = MOST_BYTES) -> bytes:
    """Read a whole regular file: a pipe would block, a device has no end, and to open one may already do something.

    Raises:
        FileKindError: it is something else, or larger.
        OSError: it cannot be read.
    """
    data = read_head(path, most_bytes + 1)
    if len(data) > most_bytes:
        raise FileKindError(f"larger than {most_bytes >> 10:,} KiB")
    return data


def read_head(path: Path, most_bytes: int) -> bytes:
    """Read the beginning of a regular file of any size.

    Raises:
        FileKindError: it is something else.
        OSError: it cannot be read.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise FileKindError("not a regular file")
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise FileKindError("not a regular file")
        return file.read(most_bytes)
