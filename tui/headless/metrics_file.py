"""The file for node_exporter's textfile collector, always complete: written beside it, then renamed."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from engine.errors import LunscopeError, RefusedError, UsageError, words_of
from engine.text import safe_text

MARK = b"# Written by lunscope metrics.\n"
SUFFIX = ".prom"
"""node_exporter reads no other files."""
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
        return
    except OSError as error:
        raise LunscopeError(f"{shown}: {words_of(error)}") from None


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
            os.fchmod(file.fileno(), MODE)
            file.write(MARK)
            file.write(text)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
