"""What one figure is: its id, unit, title, help and how it was obtained."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from collectors.model import Tier


class Unit(StrEnum):
    """Unit a field's value is in; ids carry it as a suffix."""

    PER_SECOND = "1/s"
    BYTES_PER_SECOND = "B/s"
    MILLISECONDS = "ms"
    PERCENT = "%"
    COUNT = ""
    BYTES = "B"


@dataclass(frozen=True, slots=True)
class Field:
    """One figure: where it stands, what it is called, and what a person needs to know to trust it."""

    id: str
    table: str
    """The frame table that holds it."""
    title: str
    unit: Unit
    help: str
    tier: Tier = Tier.KERNEL
    """Tier where the frame gives none for the row."""


TIER_MARKS: dict[Tier, str] = {Tier.NONE: " ", Tier.KERNEL: ":", Tier.SAMPLED: "~", Tier.EXACT: " "}
"""One character behind a figure that says how it was obtained."""
