"""The columns that the operator chose, by screen, in a file of their own beside the settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tui.theme.kept_json import KeptJson


class KeptColumns:
    """Owns the chosen columns; without a file they are kept until the end of the process."""

    def __init__(self, file: Path | None = None) -> None:
        """Read the file, if there is one."""
        self._json = KeptJson(file, "columns")
        self._chosen: dict[str, tuple[str, ...]] = {}
        for grid, ids in self._json.read().items():
            if isinstance(ids, list) and all(isinstance(one, str) for one in ids):
                self._chosen[grid] = tuple(ids)

    @property
    def problem(self) -> str:
        """Why the file was not read, in one line; empty if it was."""
        return self._json.problem

    def of(self, grid: str) -> tuple[str, ...]:
        """Field ids of the columns of a grid; none if they were never chosen."""
        return self._chosen.get(grid, ())

    def keep(self, grid: str, field_ids: Sequence[str]) -> str:
        """Keep the columns of a grid, none to forget them; returns why they were not written, else nothing."""
        if field_ids:
            self._chosen[grid] = tuple(field_ids)
        else:
            self._chosen.pop(grid, None)
        return self._json.write(self._chosen)
