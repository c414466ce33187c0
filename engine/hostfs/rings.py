"""Files that are registered with an io_uring, which need no descriptor (IORING_REGISTER_FILES, io_uring_register(2)).

The kernel lists them in fdinfo of the ring if it gets the ring's lock at once (io_uring/fdinfo.c). Newer ones list the
used slots with their paths, older ones all slots with the last part of the path.
"""

from __future__ import annotations

import os
import re

from msgspec import Struct

from engine.hostfs.kernel_files import unescape_octal, whole

_COUNT = re.compile(rb"^UserFiles:\t([0-9]+)\n((?: *[0-9]+: .*\n)*)", re.MULTILINE)
_SLOT = re.compile(rb"^ *[0-9]+: (.*)$", re.MULTILINE)
_UNUSED = b"<none>"
_NOT_STORAGE = ("socket:[", "pipe:[", "anon_inode:", "/memfd:", "/dev/zero (deleted)", "/SYSV")
_ALL_OR_NOTHING = (6, 15)
"""Since this version nothing at all is shown without the lock; before it, only the files are missing."""


class RegisteredFiles(Struct, frozen=True):
    """What the kernel says of the files of one ring."""

    names: tuple[str, ...] = ()
    """Paths as d_path gives them, without the namespace they belong to, or their last parts."""
    is_complete: bool = False


def kernel_version(release: str) -> tuple[int, int]:
    """Take major and minor version of a release such as "6.12.3-amd64"; 0 and 0 of any other text."""
    match = re.match(r"([0-9]{1,4})\.([0-9]{1,4})", release)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def parse_registered(text: bytes, release: str) -> RegisteredFiles:
    """Parse fdinfo of a ring, as a kernel of that release writes it."""
    match = _COUNT.search(text)
    if match is None:
        return RegisteredFiles()
    slots = _SLOT.findall(match[2])
    shown = [unescape_octal(os.fsdecode(slot)) for slot in slots if slot and slot != _UNUSED]
    lists_used_only = any(name.startswith("/") for name in shown) or kernel_version(release) >= _ALL_OR_NOTHING
    files = tuple(name for name in shown if not name.startswith(_NOT_STORAGE))
    return RegisteredFiles(files, is_complete=lists_used_only or len(slots) == int(match[1]))


def registered_files(fdinfo: str) -> RegisteredFiles | None:
    """Read the files of the ring with this file in /proc/PID/fdinfo; None where it is closed by now."""
    text = whole(fdinfo)
    return parse_registered(text, os.uname().release) if text else None
