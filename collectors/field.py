"""Description of one figure: id, unit, title, help, and how it was obtained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TypedDict

from msgspec import Struct

from collectors.model import Tier
from engine.replacing import replace
from engine.statistics.verdict import Better


class Unit(StrEnum):
    """Unit a field's value is in; ids carry it as a suffix."""

    PER_SECOND = "1/s"
    BYTES_PER_SECOND = "B/s"
    MILLISECONDS = "ms"
    PERCENT = "%"
    COUNT = ""
    BYTES = "B"


class Thresholds(Struct, frozen=True):
    """Values from which on a figure is coloured as a warning (`warm`) or critical (`hot`), in the field's unit."""

    warm: float
    hot: float

    def level(self, value: float) -> int:
        """0 below both, 1 from the first on, 2 from the second on; 0 for NaN."""
        return (value >= self.warm) + (value >= self.hot)


class Field(Struct, frozen=True):
    """One figure: its table, title, unit, help text and tier."""

    id: str
    table: str
    """The frame table that holds it."""
    title: str
    unit: Unit
    help: str
    tier: Tier = Tier.KERNEL
    """Tier if the frame gives none for the row."""
    hot: Thresholds | None = None
    """When it is coloured."""
    digits: int = 0
    """Most digits of a figure without a meaningful fraction; 0 for all others."""
    counts: bool = False
    """Whether it is a count: shown as a whole number if it fits."""
    better: Better | None = None
    """Which direction is an improvement; None: by its unit."""
    floor: float | None = None
    """Largest difference that never matters, in its unit, however large it is as a share; None: that of its unit."""
    since_start: bool = False
    """Whether it counts since its object appeared or the load began: no figure of an interval, so never compared."""
    source: str = ""
    """Where it comes from: a file of the kernel, tracepoints, the engine."""

    @property
    def improves(self) -> Better:
        """Which direction is an improvement: shorter times and higher rates, if nothing else is declared."""
        return self.better or _IMPROVES.get(self.unit, Better.NEITHER)

    def least_change(self, floors: Mapping[Unit, float]) -> float:
        """Largest difference that never matters; `floors` replaces those of whole units."""
        if self.unit in floors:
            return floors[self.unit]
        return UNIT_FLOORS[self.unit] if self.floor is None else self.floor


UNIT_FLOORS: Mapping[Unit, float] = {
    Unit.PER_SECOND: 1.0,
    Unit.BYTES_PER_SECOND: 65536.0,
    Unit.MILLISECONDS: 0.005,
    Unit.PERCENT: 1.0,
    Unit.COUNT: 0.1,
    Unit.BYTES: 512.0,
}
"""Differences that no one acts upon: an I/O per second, one block of 64 KiB, a few system calls, a percentage point, a
tenth of an I/O in flight, a sector."""

_IMPROVES = {
    Unit.MILLISECONDS: Better.LOWER,
    Unit.PER_SECOND: Better.HIGHER,
    Unit.BYTES_PER_SECOND: Better.HIGHER,
}


def with_sources(
    fields: Iterable[Field], sources: Mapping[str, Iterable[str]], otherwise: str = ""
) -> tuple[Field, ...]:
    """Add to fields where they come from: field ids by source, and the source of all others."""
    by_id = {field_id: source for source, ids in sources.items() for field_id in ids}
    return tuple(replace(field, source=field.source or by_id.get(field.id, otherwise)) for field in fields)


class Shown(TypedDict, total=False):
    """Display options of a Field declaration."""

    hot: Thresholds
    digits: int
    counts: bool
    better: Better
    floor: float
    since_start: bool


TIER_MARKS: dict[Tier, str] = {Tier.NONE: " ", Tier.KERNEL: ":", Tier.SAMPLED: "~", Tier.EXACT: " ", Tier.AT_LEAST: "+"}
"""One character behind a figure that says how it was obtained."""
