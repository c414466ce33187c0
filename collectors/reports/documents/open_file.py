"""Makes the document of a file: a recording, the result of a run, or a sweep."""

from __future__ import annotations

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
from collectors.session.reader import SessionReader
from engine.errors import UsageError
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
