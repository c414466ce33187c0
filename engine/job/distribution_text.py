"""Text form of distributions; what is written is read as the same value.

uniform                     every block alike
permutation                 every block exactly once per pass
zipf:1.1                    the block of rank k comes k^-1.1 times as often as the first
pareto:0.2                  0.2 of the space gets 0.8 of the I/Os, and so on within
normal:10, normal:10:30     a bell of 10 % of the space around its middle, or around 30 %
hot:90/10                   90 % of the I/Os on the first 10 % of the space
locality:50,30,20           shares of the I/Os that go to equal slices of the space
zones:60/10,30/20,10/70     shares of the I/Os, each on its own share of the space
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engine.errors import UsageError
from engine.job.distribution import (
    Distribution,
    Normal,
    Pareto,
    Permutation,
    Uniform,
    Zipf,
    Zone,
    Zones,
    distribution_problem,
    hot_and_cold,
    locality,
    whole_shares,
)
from engine.job.sizes import format_number
from engine.text import decimal_number


def parse_distribution(text: str) -> Distribution:
    """Read a distribution as the module's text shows it.

    Raises:
        UsageError: it is none, or a number is out of range.
    """
    name, _, rest = text.strip().partition(":")
    read = _READERS.get(name.strip().lower())
    if read is None:
        raise UsageError(f"{text!r} is no distribution: use one of {', '.join(_READERS)}")
    try:
        distribution = read(rest)
    except ValueError:
        raise UsageError(f"{text!r} cannot be read: write it like {_EXAMPLES[name.strip().lower()]}") from None
    except UsageError as error:
        raise UsageError(f"{text!r}: {error}") from None
    problem = distribution_problem(distribution)
    if problem:
        raise UsageError(f"{text!r}: {problem}")
    return distribution


def _nothing(make: Callable[[], Distribution]) -> Callable[[str], Distribution]:
    def read(rest: str) -> Distribution:
        if rest:
            raise ValueError(rest)
        return make()

    return read


def _numbers(text: str, separator: str) -> list[float]:
    return [_number(part.strip().removesuffix("%")) for part in text.split(separator)]


def _number(text: str) -> float:
    value = decimal_number(text)
    if value is None:
        raise ValueError(text)
    return value


def _read_normal(rest: str) -> Normal:
    deviation_pct, *centre = _numbers(rest, ":")
    if len(centre) > 1:
        raise ValueError(rest)
    return Normal(deviation_pct, *centre)


def _read_pair(text: str) -> Zone:
    ios_pct, space_pct = _numbers(text, "/")
    return Zone(ios_pct, space_pct)


def _read_hot(rest: str) -> Zones:
    hot = _read_pair(rest)
    if not _is_hot(hot):
        raise UsageError("both shares must be above 0 and below 100 %")
    return hot_and_cold(hot.ios_pct, hot.space_pct)


def _read_zones(rest: str) -> Zones:
    pairs = [_read_pair(part) for part in rest.split(",")]
    ios = whole_shares("the I/Os", [pair.ios_pct for pair in pairs])
    space = whole_shares("the space", [pair.space_pct for pair in pairs])
    return Zones(tuple(Zone(*shares) for shares in zip(ios, space, strict=True)))


_READERS: Mapping[str, Callable[[str], Distribution]] = {
    "uniform": _nothing(Uniform),
    "permutation": _nothing(Permutation),
    "zipf": lambda rest: Zipf(_number(rest.strip())),
    "pareto": lambda rest: Pareto(_number(rest.strip())),
    "normal": _read_normal,
    "hot": _read_hot,
    "locality": lambda rest: locality(_numbers(rest, ",")),
    "zones": _read_zones,
}
_EXAMPLES = {
    "uniform": "uniform",
    "permutation": "permutation",
    "zipf": "zipf:1.1",
    "pareto": "pareto:0.2",
    "normal": "normal:10 or normal:10:30",
    "hot": "hot:90/10",
    "locality": "locality:50,30,20",
    "zones": "zones:60/10,30/20,10/70",
}


def format_distribution(distribution: Distribution) -> str:
    """Write a distribution so that `parse_distribution` reads the same."""
    if not isinstance(distribution, Zones):
        return ":".join([distribution.kind, *map(format_number, distribution.numbers)])
    first, *rest = distribution.zones
    if len(rest) == 1 and _is_hot(first) and distribution == hot_and_cold(first.ios_pct, first.space_pct):
        return f"hot:{_pair(first)}"
    if all(zone.space_pct == 100 / len(distribution.zones) for zone in distribution.zones):
        return "locality:" + ",".join(format_number(zone.ios_pct) for zone in distribution.zones)
    return "zones:" + ",".join(map(_pair, distribution.zones))


def _is_hot(zone: Zone) -> bool:
    return 0 < zone.ios_pct < 100 and 0 < zone.space_pct < 100


def _pair(zone: Zone) -> str:
    return f"{format_number(zone.ios_pct)}/{format_number(zone.space_pct)}"
