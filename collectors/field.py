"""Description of one figure: id, unit, title, help, how it is obtained and how its values are merged."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from collectors.model import Part, Tier
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


class Combine(StrEnum):
    """How the figures of several rows make that of their group."""

    SUM = "sum"
    MEAN = "mean"
    """The mean, each row with the weight of its field `per`."""
    LARGEST = "largest"
    NONE = "none"


class Distribution(Struct, frozen=True):
    """Histograms of the same name in samples, and the part of the time in them."""

    title: str
    source: str
    part: Part = Part.TOTAL


class Field(Struct, frozen=True):
    """One figure: its table, title, unit, help text, how it is obtained, and how its values are merged.

    What is a quotient of sums over an interval names them in `sums`, and `per` where it is no rate: it is computed by
    `collectors.derive.quotients`, wherever the sums come from.
    """

    id: str
    title: str
    help: str
    unit: Unit
    table: str
    """The frame table that holds it."""
    source: str
    """Origin: a file of the kernel, tracepoints, the engine."""
    tier: Tier = Tier.KERNEL
    """Tier if the frame gives none for the row."""
    given_by: tuple[Tier, ...] = (Tier.KERNEL,)
    """Tiers that can give it, of a field of disks."""
    sums: str = ""
    """Quantities of an interval whose sum is divided, separated by blanks; empty for what is no quotient."""
    per: str = ""
    """Field that counts what it is a mean of, by whose `sums` it is divided; empty for what is over time."""
    factor: float = 1.0
    """What the quotient is multiplied by, for its unit."""
    zero_when_idle: bool = False
    """Whether it is 0 without I/O; rates are, and means are missing."""
    combine: Combine | None = None
    """How the figures of several rows make that of their group; None: what follows from the rest, see `combined`."""
    percent: float = 0.0
    """Percentile that it is; 0 for what is none."""
    peak: bool = False
    """Whether it is the largest value in an interval: comparable only between intervals of equal length."""
    distribution: Distribution | None = None
    """Histograms that it is a percentile or the largest value of, where those of several intervals can be merged."""
    hot: Thresholds | None = None
    """Thresholds from which it is coloured."""
    digits: int = 0
    """Most digits of a figure without a meaningful fraction; 0 for all others."""
    counts: bool = False
    """Whether it is a count: shown as a whole number if it fits."""
    better: Better | None = None
    """Direction of an improvement; None: by its unit."""
    floor: float | None = None
    """Largest difference that never matters, in its unit, however large it is as a share; None: that of its unit."""
    since_start: bool = False
    """Whether it counts since its object appeared or the load began: no figure of an interval, so never compared."""

    @property
    def improves(self) -> Better:
        """Which direction is an improvement: shorter times and higher rates, if nothing else is declared."""
        return self.better or _IMPROVES.get(self.unit, Better.NEITHER)

    @property
    def combined(self) -> Combine:
        """How the figures of several rows make that of their group: rates and counts are added up."""
        if self.combine is not None or self.percent:
            return self.combine or Combine.NONE
        if self.peak or self.per:
            return Combine.LARGEST if self.peak else Combine.MEAN
        return Combine.SUM if self.unit in _ADDITIVE else Combine.NONE

    @property
    def percentile(self) -> tuple[float, Distribution] | None:
        """The percentile that it is, and its histograms; None if it is none that intervals can be merged for."""
        return (self.percent, self.distribution) if self.percent and self.distribution is not None else None

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

_ADDITIVE = frozenset({Unit.PER_SECOND, Unit.BYTES_PER_SECOND, Unit.COUNT})

_IMPROVES = {
    Unit.MILLISECONDS: Better.LOWER,
    Unit.PER_SECOND: Better.HIGHER,
    Unit.BYTES_PER_SECOND: Better.HIGHER,
}


TIER_MARKS: dict[Tier, str] = {Tier.NONE: " ", Tier.KERNEL: ":", Tier.SAMPLED: "~", Tier.EXACT: " ", Tier.AT_LEAST: "+"}
"""One character behind a figure that says how it was obtained."""
