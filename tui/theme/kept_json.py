"""A JSON file of what the operator chose on the screens, beside the settings, which only the operator writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from engine.text import short_text
from tui.replaced_file import replace_file

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
            replace_file(self._file, json.dumps(document, indent=1))
        except OSError as error:
            return f"{self._what} kept until you leave: {self._file}: {error.strerror or error}"
        return ""
