"""The columns that the operator chose, by screen, in a file of their own beside the settings."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from engine.text import short_text

_LARGEST_BYTES = 1 << 20


class KeptColumns:
    """Owns the chosen columns; without a file they are kept until the end of the process.

    A file that cannot be read is never overwritten. The settings are another file, which only the operator writes.
    """

    def __init__(self, file: Path | None = None) -> None:
        """Read the file, if there is one."""
        self._file = file
        self.problem = ""
        """Why the file was not read, in one line; empty if it was."""
        self._chosen: dict[str, tuple[str, ...]] = {}
        if file is not None:
            self._read(file)

    def of(self, grid: str) -> tuple[str, ...]:
        """Field ids of the columns of a grid; none if they were never chosen."""
        return self._chosen.get(grid, ())

    def keep(self, grid: str, field_ids: Sequence[str]) -> str:
        """Keep the columns of a grid, none to forget them; returns why they were not written, else nothing."""
        if field_ids:
            self._chosen[grid] = tuple(field_ids)
        else:
            self._chosen.pop(grid, None)
        if self._file is None:
            return ""
        if self.problem:
            return f"columns kept until you leave: {self.problem}"
        try:
            _write(self._file, json.dumps(self._chosen, indent=1))
        except OSError as error:
            return f"columns kept until you leave: {self._file}: {error.strerror or error}"
        return ""

    def _read(self, file: Path) -> None:
        try:
            if file.stat().st_size > _LARGEST_BYTES:
                raise ValueError("larger than 1 MiB")
            document = json.loads(file.read_text(encoding="utf-8"))
            if not isinstance(document, dict):
                raise TypeError("no JSON object")
        except FileNotFoundError:
            return
        except (OSError, ValueError, TypeError, RecursionError) as error:
            self.problem = f"{file}: {short_text(str(error))}: delete it to choose columns anew"
            return
        for grid, ids in document.items():
            if isinstance(ids, list) and all(isinstance(one, str) for one in ids):
                self._chosen[grid] = tuple(ids)


def _write(file: Path, text: str) -> None:
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
