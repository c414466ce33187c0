"""Files of /proc and /sys: their roots, fast reads of small files, and how names and device numbers are written.

For what is read for thousands of processes or disks, again and again.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from msgspec import Struct


class Roots(Struct, frozen=True):
    """The trees that say who uses what."""

    procfs: Path = Path("/proc")
    sysfs: Path = Path("/sys")
    devices: Path = Path("/dev")


_OCTAL = re.compile(r"\\([0-7]{3})")


def unescape_octal(text: str) -> str:
    r"""Undo the `\040` escapes of /proc/*/mountinfo and /proc/swaps (proc(5))."""
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), text)


def device_text(number: int) -> str:
    """Spell a device number as sysfs does, `8:1`."""
    return f"{os.major(number)}:{os.minor(number)}"


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
