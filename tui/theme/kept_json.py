"""A JSON file of what the operator chose on the screens, beside the settings, which only the operator writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from engine.small_file import read_small
from engine.strict_json import load_json_object
from engine.text import short_text
from tui.replaced_file import replace_file


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
            return load_json_object(read_small(self._file))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            self.problem = f"{self._file}: {short_text(str(error))}: delete it to choose {self._what} anew"
            return {}

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
