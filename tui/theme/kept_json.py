"""A JSON file of what the operator chose on the screens, beside the settings, which only the operator writes."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from engine.text import short_text

_LARGEST_BYTES = 1 << 20


class KeptJson:
    """One file; without it choices are kept until the end of the process.

    A file that cannot be read is never overwritten.
    """

    def __init__(self, file: Path | None, what: str) -> None:
        """Name the file and what is in it, for messages."""
        self._file = file
        self._what = what
        self.problem = ""
        """Why the file was not read, in one line; empty if it was."""

    def read(self) -> dict[str, object]:
        """Return the content; empty without a file, and for one that cannot be read."""
        if self._file is None:
            return {}
        try:
            if self._file.stat().st_size > _LARGEST_BYTES:
                raise ValueError("larger than 1 MiB")
            document = json.loads(self._file.read_text(encoding="utf-8"))
            if not isinstance(document, dict):
                raise TypeError("no JSON object")
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, RecursionError) as error:
            self.problem = f"{self._file}: {short_text(str(error))}: delete it to choose {self._what} anew"
            return {}
        return document

    def write(self, document: Mapping[str, object]) -> str:
        """Replace the content; returns why it was not written, else nothing."""
        if self._file is None:
            return ""
        if self.problem:
            return f"{self._what} kept until you leave: {self.problem}"
        try:
            _replace(self._file, json.dumps(document, indent=1))
        except OSError as error:
            return f"{self._what} kept until you leave: {self._file}: {error.strerror or error}"
        return ""


def _replace(file: Path, text: str) -> None:
    """Replace a file as a whole, so that it is never half written."""
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as new:
            new.write(f"{text}\n")
        Path(name).replace(file)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
