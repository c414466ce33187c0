"""Where in a target random I/Os go, as plain frozen values; `engine.job.distribution_text` reads and writes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, TypeAlias

from msgspec import Struct
from msgspec.structs import astuple

from engine.errors import UsageError
from engine.job.sizes import adds_up, scaled_to_100

MAX_EXPONENT = 10.0
MAX_ZONES = 256


class _Shape(Struct, frozen=True):
    """What all distributions have in common."""

    kind: ClassVar[str]

    @property
    def numbers(self) -> tuple[float, ...]:
        """Everything but the kind, as engine._native takes it."""
        return tuple(_flat(astuple(self)))


def _flat(values: tuple[Any, ...]) -> Iterator[float]:
    for value in values:
        if isinstance(value, Struct):
            yield from _flat(astuple(value))
        elif isinstance(value, tuple):
            yield from _flat(value)
        else:
            yield float(value)


class Uniform(_Shape, frozen=True):
    """Every block alike."""

    kind: ClassVar[str] = "uniform"


class Permutation(_Shape, frozen=True):
    """Every block exactly once per pass, in another order each pass; reads and writes together."""

    kind: ClassVar[str] = "permutation"


class Zipf(_Shape, frozen=True):
    """The block of rank k comes k^-exponent times as often as the first; ranks are scattered over the space."""

    exponent: float
    kind: ClassVar[str] = "zipf"


class Pareto(_Shape, frozen=True):
    """The share h of the space gets 1 - h of the I/Os, and so on within; ranks are scattered over the space."""

    hot_share: float
    kind: ClassVar[str] = "pareto"


class Normal(_Shape, frozen=True):
    """A bell; standard deviation and centre in percent of the space, draws outside it are drawn again."""

    deviation_pct: float
    centre_pct: float = 50.0
    kind: ClassVar[str] = "normal"


class Zone(Struct, frozen=True):
    """A stretch of the space and its share of the I/Os, both in percent."""

    ios_pct: float
    space_pct: float


class Zones(_Shape, frozen=True):
    """Zones that follow each other from the start of the space; I/Os are spread evenly within each."""

    zones: tuple[Zone, ...]
    kind: ClassVar[str] = "zones"


Distribution: TypeAlias = Uniform | Permutation | Zipf | Pareto | Normal | Zones


def locality(shares_pct: Sequence[float]) -> Zones:
    """Make the zones of a locality table: shares of the I/Os on equal slices of the space, which add up to 100.

    Raises:
        UsageError: there are none or too many, one is negative, or they add up to something else.
    """
    if not 1 <= len(shares_pct) <= MAX_ZONES:
        raise UsageError(f"{len(shares_pct)} shares: give 1 to {MAX_ZONES}")
    return Zones(tuple(Zone(share, 100 / len(shares_pct)) for share in whole_shares("the I/Os", shares_pct)))


def hot_and_cold(ios_pct: float, space_pct: float) -> Zones:
    """Make two zones: this share of the I/Os on the first share of the space, the rest on the rest."""
    return Zones((Zone(ios_pct, space_pct), Zone(100 - ios_pct, 100 - space_pct)))


def distribution_problem(distribution: Distribution) -> str:
    """Say what is wrong with a distribution; empty if nothing is."""
    match distribution:
        case Zipf(exponent) if not 0 < exponent <= MAX_EXPONENT:
            return f"the exponent {exponent:g} is out of range: above 0 up to {MAX_EXPONENT:g}"
        case Pareto(hot_share) if not 0 < hot_share < 1:
            return f"the share {hot_share:g} is out of range: above 0 and below 1"
        case Normal(deviation_pct, _) if not 0 < deviation_pct <= 100:
            return f"the deviation {deviation_pct:g} % is out of range: above 0 up to 100"
        case Normal(_, centre_pct) if not 0 <= centre_pct <= 100:
            return f"the centre {centre_pct:g} % is out of range: 0 to 100"
        case Zones(zones):
            return _zones_problem(zones)
        case _:
            return ""


def _zones_problem(zones: Sequence[Zone]) -> str:
    if not 1 <= len(zones) <= MAX_ZONES:
        return f"{len(zones)} zones: give 1 to {MAX_ZONES}"
    for zone in zones:
        if not (0 <= zone.ios_pct <= 100 and 0 < zone.space_pct <= 100):
            shown = f"{zone.ios_pct:g}/{zone.space_pct:g}"
            return f"the zone {shown} is out of range: 0 to 100 % of the I/Os on above 0 up to 100 % of the space"
    for what, shares in (
        ("the I/Os", [zone.ios_pct for zone in zones]),
        ("the space", [zone.space_pct for zone in zones]),
    ):
        if not adds_up(shares):
            return f"the shares of {what} add up to {sum(shares):g} %, not 100"
    return ""


def whole_shares(what: str, shares_pct: Sequence[float]) -> tuple[float, ...]:
    """Scale shares that miss 100 by rounding only.

    Raises:
        UsageError: one is below 0, or they miss it by more.
    """
    if not all(share >= 0 for share in shares_pct):
        raise UsageError(f"the shares of {what} must be 0 or above")
    if not adds_up(shares_pct):
        raise UsageError(f"the shares of {what} add up to {sum(shares_pct):g} %, not 100")
    return scaled_to_100(shares_pct)
