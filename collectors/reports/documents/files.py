"""Files of reports: made of a recording, the result of a run or a sweep; written, never over what is no report."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from collectors.compare.run_side import is_document
from collectors.compare.sweep_side import is_trial_file
from collectors.reports.documents.averages import DocumentOptions
from collectors.reports.documents.content import Document
from collectors.reports.documents.json_values import read_document
from collectors.reports.documents.recording import recording_document
from collectors.reports.documents.run import run_report
from collectors.reports.documents.study import study_report
from collectors.reports.documents.sweep import sweep_report
from collectors.reports.documents.sweep_file import read_sweep_document, read_trial_file
from collectors.reports.formats.registry import formats
from collectors.session.reader import SessionReader
from engine.errors import LunscopeError, RefusedError, UsageError, unusable, words_of
from engine.job.formats.choose import write_new
from engine.text import safe_text


def document_of(path: Path, options: DocumentOptions) -> Document:
    """Read a file of any of these kinds; `options` are for recordings.

    Raises:
        UsageError: it is of another kind.
        LunscopeError: it cannot be read.
    """
    if not is_document(path):
        with SessionReader(path) as reader:
            return recording_document(reader, options)
    if is_trial_file(path):
        return sweep_report(path, read_trial_file(path))
    values = read_document(path)
    schema = str(values.get("schema", ""))
    if schema.startswith("lunscope.run/"):
        return run_report(path, values)
    if schema.startswith("lunscope.sweep/"):
        return sweep_report(path, read_sweep_document(values))
    if schema.startswith("lunscope.preset/"):
        return study_report(path, values)
    shown = safe_text(str(path))
    raise UsageError(f"{shown}: neither a recording nor a document of run --json, sweep --json or sweep --trials")


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
