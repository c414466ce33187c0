"""Writes a report to a file, never over a file that is not itself a report."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from collectors.reports.formats.registry import formats
from engine.errors import LunscopeError, RefusedError, UsageError, unusable, words_of
from engine.job.formats.choose import write_new
from engine.text import safe_text

_HEAD_BYTES = 256


def require_writable(path: Path, *, overwrite: bool) -> None:
    """Make sure before a recording is read that the file may be written.

    Raises:
        UsageError: it exists, and nobody said that it may be replaced.
        RefusedError: it is no report.
        LunscopeError: it cannot be read.
    """
    shown = safe_text(str(path))
    try:
        status = path.lstat()
        if not overwrite:
            raise UsageError(f"{shown}: exists; use another name or --overwrite")
        if not stat.S_ISREG(status.st_mode) or not _is_report(path):
            raise RefusedError(f"{shown}: not a report of lunscope, so it is not replaced: use another name")
    except FileNotFoundError:
        return
    except OSError as error:
        raise unusable(f"{shown}: {words_of(error)}", error) from None


def write_report(path: Path, lines: Iterable[str], *, overwrite: bool) -> None:
    """Write a whole file, or leave the one that was there as it was.

    Raises:
        LunscopeError: it exists and must not be replaced, or cannot be written.
    """
    require_writable(path, overwrite=overwrite)
    parts = (f"{line}\n" for line in lines)
    if not os.path.lexists(path):
        write_new(path, parts)
        return
    new = path.with_name(f".lunscope-{os.getpid()}.new")
    try:
        write_new(new, parts)
        new.replace(path)
    except OSError as error:
        raise LunscopeError(f"{safe_text(str(path))}: {words_of(error)}") from None
    finally:
        new.unlink(missing_ok=True)


def _is_report(path: Path) -> bool:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        head = file.read(_HEAD_BYTES)
    return any(each.mark.encode() in head for each in formats())
