"""Other processes that have a device or file open for writing: virtual machines, databases, other load drivers.

They hold no exclusive claim, so O_EXCL does not see them.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import signal
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from engine.guard.roots import Roots
from engine.guard.sysblock import read_text
from engine.syscalls import statx

_FLAGS = re.compile(r"^flags:\s*([0-7]+)", re.MULTILINE)
_NO_STORAGE = ("socket:", "pipe:", "anon_inode:", "/dev/null", "/dev/pts/", "/dev/tty", "/memfd:")


@dataclass(frozen=True, slots=True)
class Writers:
    """Who writes to what: words such as "is open for writing by qemu (pid 812)"."""

    devices: dict[int, str] = field(default_factory=dict)
    files: dict[tuple[int, int], str] = field(default_factory=dict)


def _is_for_writing(process: Path, descriptor: str) -> bool:
    match = _FLAGS.search(read_text(process / "fdinfo" / descriptor) or "")
    return match is not None and int(match[1], 8) & os.O_ACCMODE != os.O_RDONLY


def _storage_descriptors(process: Path) -> Iterator[Path]:
    try:
        entries = list((process / "fd").iterdir())
    except OSError:
        return
    for entry in entries:
        try:
            text = str(entry.readlink())
        except OSError:
            continue
        if not text.startswith(_NO_STORAGE) and _is_for_writing(process, entry.name):
            yield entry


def read_writers(roots: Roots) -> Writers:
    """Look through the descriptors of every process but our own; those we may not see are not in it."""
    writers = Writers()
    for process in roots.procfs.iterdir():
        if not process.name.isdigit() or process.name == str(os.getpid()):
            continue
        text = ""
        for entry in _storage_descriptors(process):
            try:
                status = statx(str(entry))
            except OSError:
                continue
            text = text or f"is open for writing by {read_text(process / 'comm') or '?'} (pid {process.name})"
            if stat.S_ISBLK(status.mode):
                writers.devices.setdefault(status.rdev, text)
            elif stat.S_ISREG(status.mode):
                writers.files.setdefault((status.device, status.inode), text)
    return writers


def has_unseen_writer(fd: int) -> bool:
    """Tell whether anyone at all, kernel and hidden processes included, has a file open for writing.

    A read lease is refused while a writer exists (fcntl(2), F_SETLEASE). It is given back at once; SIGURG, which is
    ignored by default, replaces the SIGIO that would end the process if someone opened the file just then.
    Needs a descriptor open for reading only; where leases do not work the answer is False.
    """
    try:
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    return False
