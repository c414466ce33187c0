"""The file for node_exporter's textfile collector, always complete: written beside it, then renamed."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import re
import stat
from pathlib import Path

from engine.errors import RefusedError, UsageError, unusable, words_of
from engine.text import safe_text

MARK = b"# Written by lunscope metrics.\n"
SUFFIX = ".prom"
"""node_exporter reads no other files."""
_LEFTOVER = re.compile(r"\.[0-9]{1,10}\.new", re.ASCII)
MODE = 0o644
"""node_exporter runs as another user."""


def require_textfile(path: Path, option: str = "--textfile") -> None:
    """Make sure before sampling begins that the file may be replaced.

    Raises:
        UsageError: its name does not end as node_exporter wants it, or its folder does not exist.
        RefusedError: another program wrote it.
        LunscopeError: it cannot be read.
    """
    shown = safe_text(str(path))
    if path.suffix != SUFFIX:
        raise UsageError(f"{option} {shown}: node_exporter reads only names that end in {SUFFIX}")
    if not path.parent.is_dir():
        raise UsageError(f"{option} {shown}: {safe_text(str(path.parent))} is not a folder: create it")
    try:
        if not stat.S_ISREG(path.lstat().st_mode) or not _is_ours(path):
            raise RefusedError(f"{shown}: not written by lunscope metrics, so it is not replaced: use another name")
    except FileNotFoundError:
        pass
    except OSError as error:
        raise unusable(f"{shown}: {words_of(error)}", error) from None
    _remove_leftovers(path)


def _remove_leftovers(path: Path) -> None:
    """Remove what a lunscope that was killed while it wrote has left: nobody holds the lock of such a file."""
    for found in path.parent.glob(f".{glob.escape(path.name)}.*.new"):
        if not _LEFTOVER.fullmatch(found.name.removeprefix(f".{path.name}")):
            continue
        with contextlib.suppress(OSError):
            descriptor = os.open(found, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                head = file.read(len(MARK))
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if stat.S_ISREG(os.fstat(descriptor).st_mode) and MARK.startswith(head):
                    found.unlink()


def _is_ours(path: Path) -> bool:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(len(MARK)) == MARK


def replace_textfile(path: Path, text: bytes) -> None:
    """Replace the file atomically; readers see the former or the new one.

    Raises:
        OSError: it cannot be written; the former one stays.
    """
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, MODE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            os.fchmod(file.fileno(), MODE)
            file.write(MARK)
            file.write(text)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
