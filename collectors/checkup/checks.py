"""What a check of this host finds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """How well one thing works."""

    OK = "ok"
    LIMITED = "limited"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at: what was found and, unless it is fine, how to mend it."""

    id: str
    status: Status
    found: str
    mend: str = ""
