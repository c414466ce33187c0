"""Where random I/Os of a fio job go: random_distribution and norandommap (fio(1), I/O type)."""

from __future__ import annotations

import math
from collections.abc import Callable

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
)
from engine.job.formats.fio_blocks import filled_up
from engine.job.formats.fio_sections import Given, Option
from engine.job.formats.fio_values import fraction, switch
from engine.job.formats.text_file import quoted
from engine.job.sizes import adds_up, scaled_to_100

_SHORTENED = (
    "blocks of several sizes without norandommap: fio shortens those that meet blocks already done, here they keep the "
    "sizes and shares asked for"
)
_SCATTERED = (
    "random_distribution=normal: fio scatters the bell over the space, here it is around the middle; its width, "
    "which fio adds to a twelfth of the space, is the same"
)


def take_distribution(given: Given, *, one_size: bool) -> tuple[Distribution, Distribution | None, list[str]]:
    """Take the distribution of all I/Os or of reads, that of writes if they have another, and what to warn of.

    Without any fio visits every block once per pass, unless norandommap is given or blocks are of several sizes.

    Raises:
        UsageError: the distribution is none that is driven, or a number is out of range.
    """
    option = given.take("random_distribution")
    without_map = switch(given.take("norandommap"))
    if option is None or option.value == "random":
        if without_map:
            return Uniform(), None, []
        if one_size:
            return Permutation(), None, []
        return Uniform(), None, [_SHORTENED]
    if option.text.startswith("zoned:"):
        reads, _, writes = option.text.removeprefix("zoned:").partition(",")
        return _zones(option, reads), _zones(option, writes) if writes else None, []
    name, _, rest = option.text.partition(":")
    if name not in _READERS:
        raise option.error(
            f"{quoted(option.text)} is not driven: use random, zipf, pareto, normal or zoned (in percent)"
        )
    if ":" in rest:
        raise option.error(f"a centre, as in {quoted(option.text)}, is not driven: leave it out")
    distribution = _READERS[name](fraction(option, rest))
    _refuse(option, distribution)
    return distribution, None, [_SCATTERED] if name == "normal" else []


def _normal(deviation_pct: float) -> Normal:
    """Take the bell that fio draws: the mean of 12 uniform numbers, and a uniform one of the deviation's width."""
    return Normal(100 * math.sqrt(1 / 144 + (deviation_pct / 100) ** 2 / 12))


_READERS: dict[str, Callable[[float], Distribution]] = {"zipf": Zipf, "pareto": Pareto, "normal": _normal}


def _zones(option: Option, text: str) -> Zones:
    pairs = text.split(":")
    if any("/" not in pair for pair in pairs):
        raise option.error(f"{quoted(text)}: write zones as 60/10:40/90, each its share of I/Os and of the space")
    spaces = filled_up(option, text)
    ios_pct = [fraction(option, ios) for ios, _ in spaces]
    if not adds_up(ios_pct):
        raise option.error(f"the shares of the I/Os in {quoted(text)} add up to {sum(ios_pct):g} %, not 100")
    space_pct = scaled_to_100([percent for _, percent in spaces])
    zones = Zones(tuple(Zone(ios, space) for ios, space in zip(scaled_to_100(ios_pct), space_pct, strict=True)))
    _refuse(option, zones)
    return zones


def _refuse(option: Option, distribution: Distribution) -> None:
    problem = distribution_problem(distribution)
    if problem:
        raise option.error(problem)
