"""Files of /proc and /sys: their roots, the readers of small files, and how names and device numbers are written.

Attributes of thousands of devices are read at once by `engine._native.read_attributes`; everything else goes through
these readers, which are fast enough for thousands of processes or disks, again and again.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from msgspec import Struct

from engine.text import whole_number


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


def major_minor(text: str | None) -> tuple[int, int] | None:
    """Parse `8:1`; None for anything else."""
    major, _, minor = (text or "").partition(":")
    numbers = whole_number(major), whole_number(minor)
    return None if numbers[0] is None or numbers[1] is None else (numbers[0], numbers[1])


def process_ids(procfs: str | Path) -> list[str]:
    """List the folders of processes, in no order.

    Raises:
        OSError: there is no procfs.
    """
    return [name for name in os.listdir(procfs) if whole_number(name) is not None]  # noqa: PTH208 - see above


def entries_of(folder: str | Path) -> list[str]:
    """List a folder, sorted; empty where it is gone or may not be read."""
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - see above
    except OSError:
        return []


def link_target(path: str | Path) -> str:
    """Return the target of a link as it is written; empty where there is none."""
    try:
        return os.readlink(path)  # noqa: PTH115 - see above
    except OSError:
        return ""


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


def read_text(path: str | Path) -> str | None:
    """Return the content of a small kernel file without the line end, None if there is none or it cannot be read."""
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - a third of the cost of pathlib, for all disks
            return file.read().decode(errors="surrogateescape").strip()
    except OSError:
        return None


def read_number(path: str | Path) -> int | None:
    """Return the number in a small kernel file, None if there is none."""
    text = read_text(path)
    return None if text is None else whole_number(text)
