"""Block sizes and offsets of a fio job: bs, bsrange, bssplit, random_distribution and norandommap (fio(1))."""

from __future__ import annotations

import math
import re
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
from engine.job.formats.fio_sections import Given, Option
from engine.job.formats.fio_values import Units, by_direction, fraction, switch
from engine.job.formats.text_file import quoted
from engine.job.sizes import ROUNDING_PERCENT, adds_up, scaled_to_100
from engine.job.spec import MAX_BLOCK_BYTES, BlockShare, Knobs

Blocks = tuple[BlockShare, ...]

_DEFAULT: Blocks = (BlockShare(4096),)
_MOST_SIZES = 256
_RANGE = re.compile(r"([^-:]+)[-:]([^-:]+)")


def take_blocks(given: Given, units: Units) -> tuple[Blocks, Blocks]:
    """Take the sizes of reads and of writes.

    Raises:
        UsageError: they cannot be read, shares do not make 100, or sizes are given in more than one way.
    """
    ways: dict[str, tuple[Option | None, Callable[[Option, str, Units], Blocks]]] = {
        "bs": (given.take("bs", "blocksize"), _one_size),
        "bsrange": (given.take("bsrange", "blocksize_range"), _range),
        "bssplit": (given.take("bssplit"), _split),
    }
    chosen = [(option, read) for option, read in ways.values() if option is not None]
    if not chosen:
        return _DEFAULT, _DEFAULT
    # As in fio a split overrides a range, and both override a plain size.
    option, read = chosen[-1]
    reads, writes = by_direction(option.text)
    return (
        read(option, reads, units) if reads else _DEFAULT,
        read(option, writes, units) if writes else _DEFAULT,
    )


def _size(option: Option, text: str, units: Units) -> int:
    size = units.integer(option, text, most=MAX_BLOCK_BYTES)
    if size < 1:
        raise option.error(f"{quoted(text)} is out of range: at least 1 byte")
    return size


def _one_size(option: Option, text: str, units: Units) -> Blocks:
    return (BlockShare(_size(option, text, units)),)


def _range(option: Option, text: str, units: Units) -> Blocks:
    """Share I/Os out as fio draws sizes: lower + upper * random, down to a multiple of lower, at most upper."""
    match = _RANGE.fullmatch(text)
    if not match:
        raise option.error(f"{quoted(text)} is not a range: write it like 4k-64k")
    lower, upper = sorted((_size(option, match[1], units), _size(option, match[2], units)))
    whole = upper // lower
    if whole > _MOST_SIZES:
        raise option.error(f"{quoted(text)} has {whole} sizes: at most {_MOST_SIZES} are driven")
    shares = [(lower * step, lower / upper) for step in range(1, whole + 1)] + [(upper, (upper % lower) / upper)]
    sizes = [(size, 100 * share) for size, share in shares if share > 0]
    percents = scaled_to_100([percent for _, percent in sizes])
    return tuple(BlockShare(size, percent) for (size, _), percent in zip(sizes, percents, strict=True))


def _split(option: Option, text: str, units: Units) -> Blocks:
    shares = filled_up(option, text)
    sizes = [_size(option, size, units) for size, _ in shares]
    percents = scaled_to_100([percent for _, percent in shares])
    added: dict[int, float] = {}
    for size, percent in zip(sizes, percents, strict=True):
        added[size] = added.get(size, 0.0) + percent
    return tuple(BlockShare(size, percent) for size, percent in added.items() if percent > 0)


def filled_up(option: Option, text: str) -> list[tuple[str, float]]:
    """Read `what/percent:what/percent`; shares left out have what is left of 100, evenly.

    Raises:
        UsageError: a share is no number, or all of them do not make 100.
    """
    parts = [part.partition("/") for part in text.split(":")]
    if len(parts) > _MOST_SIZES:
        raise option.error(f"{len(parts)} shares: at most {_MOST_SIZES}")
    given = [fraction(option, percent) for _, _, percent in parts if percent.strip()]
    missing, left = len(parts) - len(given), 100 - sum(given)
    if left < -ROUNDING_PERCENT or (not missing and left > ROUNDING_PERCENT):
        raise option.error(
            f"the shares of {quoted(text)} add up to {sum(given):g} %, not 100: fix them, or leave one share out"
        )
    return [
        (what.strip(), fraction(option, percent) if percent.strip() else max(left, 0.0) / missing)
        for what, _, percent in parts
    ]


def used_mixes(knobs: Knobs) -> list[Blocks]:
    """Return the block sizes of each direction that is ever drawn."""
    return [knobs.blocks] * (knobs.read_pct > 0) + [knobs.drawn_write_blocks] * (knobs.read_pct < 100)


def take_alignment(option: Option | None, units: Units, knobs: Knobs) -> int | None:
    """Read blockalign, without which fio aligns random blocks to the smallest of their direction.

    Raises:
        UsageError: it is different for reads and writes.
    """
    mixes = used_mixes(knobs)
    sizes = {share.block_bytes for mix in mixes for share in mix}
    if option is not None:
        aligned = {_size(option, text, units) for text in by_direction(option.text)}
        if len(aligned) > 1:
            raise option.error("another alignment of reads than of writes is not driven: give one")
        (align_bytes,) = aligned
        return None if sizes == {align_bytes} else align_bytes
    if all(len(mix) == 1 for mix in mixes):
        return None
    smallest = {min(share.block_bytes for share in mix) for mix in mixes}
    return smallest.pop() if len(smallest) == 1 else None


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
    generator = given.take("random_generator")
    # The register visits every block once and needs no map for it (fio, io_u.c).
    without_map = switch(given.take("norandommap")) and (generator is None or generator.value != "lfsr")
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
    reader, default = _READERS[name]
    distribution = reader(fraction(option, rest) if rest else default)
    _refuse(option, distribution)
    return distribution, None, [_SCATTERED] if name == "normal" else []


def _normal(deviation_pct: float) -> Normal:
    """Take the bell that fio draws: the mean of 12 uniform numbers, and a uniform one of the deviation's width."""
    return Normal(100 * math.sqrt(1 / 144 + (deviation_pct / 100) ** 2 / 12))


_READERS: dict[str, tuple[Callable[[float], Distribution], float]] = {
    "zipf": (Zipf, 1.1),
    "pareto": (Pareto, 0.2),
    "normal": (_normal, 0.0),
}
"""Each with the value that fio takes where none is given (fio, options.h)."""


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
