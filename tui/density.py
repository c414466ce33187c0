"""How much the screens show: normal, dense or lite."""

from __future__ import annotations

from enum import StrEnum


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
