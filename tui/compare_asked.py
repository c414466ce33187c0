"""A comparison that was asked for on the command line, for its screen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collectors.compare.comparison import CompareOptions


class CompareAsked(Struct, frozen=True):
    """A and B as typed, and what to compare of them."""

    files: tuple[str, str]
    options: CompareOptions
    tables: tuple[str, ...]
    replayed: Path | None = None
    """The one that the other screens replay."""
