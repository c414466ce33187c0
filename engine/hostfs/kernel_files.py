"""Small files of /proc and /sys, read with plain system calls: pathlib costs several times as much.

For what is read for thousands of processes or disks, again and again.
"""

from __future__ import annotations

import os


def names_in(folder: str) -> list[str]:
    """List a folder; empty where it is gone.

    Raises:
        PermissionError: it belongs to another user.
    """
    try:
        return os.listdir(folder)  # noqa: PTH208 - see above
    except PermissionError:
        raise
    except OSError:
        return []


def start_of(path: str, size_bytes: int = 1024) -> bytes:
    """Read the first bytes of a file; none where it is gone or may not be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(fd, size_bytes)
    except OSError:
        return b""
    finally:
        os.close(fd)


def whole(path: str) -> bytes:
    """Read a file to its end; nothing where it is gone or may not be read."""
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - see above
            return file.read()
    except OSError:
        return b""
