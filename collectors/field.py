"""What one figure is: its id, unit, title, help and how it was obtained."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypedDict

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
class Thresholds:
    """From which value on a figure is worth a look (`warm`) and worth a call (`hot`), in the field's unit."""

    warm: float
    hot: float


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
    hot: Thresholds | None = None
    """When it is coloured."""
    digits: int = 0
    """Most digits of a figure whose fraction means nothing; 0 for all others."""
    counts: bool = False
    """Whether it counts things: a whole number as long as it fits."""


class Shown(TypedDict, total=False):
    """How a figure is shown, as a declaration of a Field takes it."""

    hot: Thresholds
    digits: int
    counts: bool


TIER_MARKS: dict[Tier, str] = {Tier.NONE: " ", Tier.KERNEL: ":", Tier.SAMPLED: "~", Tier.EXACT: " "}
"""One character behind a figure that says how it was obtained."""
