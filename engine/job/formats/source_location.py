"""Location in a file."""

from __future__ import annotations

from dataclasses import dataclass

from engine.errors import UsageError
from engine.text import safe_text

_LONGEST_QUOTE = 60


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """One line of one file."""

    path: str
    line: int

    def error(self, key: str, what: str) -> UsageError:
        """Build the error for a key on this line."""
        return UsageError(f"{self}: {safe_text(key)}: {what}")

    def __str__(self) -> str:
        return f"{safe_text(self.path)}, line {self.line}"


def quoted(text: str) -> str:
    """Quote a value for an error, cut where it is long."""
    cut = text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE] + "..."
    return f"{cut!a}"
