"""How much the screens show: normal, dense or lite, kept in a file of its own beside the settings."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from tui.theme.kept_json import KeptJson

VIEW_FILE = "view.json"
"""Name of the file, beside the settings."""


class Density(StrEnum):
    """How much the screens show."""

    NORMAL = "normal"
    DENSE = "dense"
    """More rows: no blank lines, no key line, tables before charts."""
    LITE = "lite"
    """No charts, for slow links."""

    @property
    def following(self) -> Density:
        """The next one, after the last the first."""
        every = tuple(Density)
        return every[(every.index(self) + 1) % len(every)]


class KeptDensity:
    """Owns the density that was chosen with its key; without a file it is kept until the end of the process."""

    def __init__(self, file: Path | None = None) -> None:
        """Read the file, if there is one; one that cannot be read counts as none, and is left as it is."""
        self._json = KeptJson(file, "view")
        known = {density.value: density for density in Density}
        self.chosen: Density | None = known.get(str(self._json.read().get("view")))
        """None if none was ever chosen."""

    def keep(self, density: Density) -> str:
        """Keep a density; returns why it was not written, else nothing."""
        self.chosen = density
        return self._json.write({"view": density.value})
