"""Kinds of values that knobs have: how each is read, written and checked."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from engine.errors import UsageError
from engine.job.distribution import Distribution, distribution_problem
from engine.job.distribution_text import format_distribution, parse_distribution
from engine.job.limits import MAX_BLOCK_BYTES, SECTOR_BYTES
from engine.job.sizes import BlockShare, adds_up, format_blocks, format_number, format_size, parse_blocks, parse_size
from engine.job.toml_values import WrongTypeError, quoted, read_number, read_size, read_whole, word_reader
from engine.text import decimal_number, whole_number

if TYPE_CHECKING:
    from engine.job.knobs.values import Knobs


_Parsed = TypeVar("_Parsed")


class KnobKind(ABC):
    """A kind of value."""

    @abstractmethod
    def read(self, value: Any) -> Any:  # noqa: ANN401 (each kind has a type of its own)
        """Read what a job file or an event holds.

        Raises:
            WrongTypeError: it is of another type.
            UsageError: its text cannot be read.
        """

    @abstractmethod
    def parse(self, text: str) -> Any:  # noqa: ANN401 - as above
        """Read what was typed.

        Raises:
            UsageError: it cannot be read.
        """

    @abstractmethod
    def toml(self, value: Any) -> str:  # noqa: ANN401 - as above
        """Write a value so that `read` reads it back from TOML."""

    @abstractmethod
    def plain(self, value: Any) -> str | int | float:  # noqa: ANN401 - as above
        """Format a value for events and for people."""

    def document(self, value: Any) -> object:  # noqa: ANN401 - as above
        """Convert a value for the JSON of a run."""
        return self.plain(value)

    def listed(self, text: str) -> Sequence[str]:
        """Take the values of a list apart, as --vary has them."""
        return [part.strip() for part in text.split(",")]

    def problems(self, value: Any, knobs: Knobs) -> Iterator[str]:  # noqa: ANN401 - as above
        """Say what is wrong with a value beside the other knobs."""
        yield from ()


def _parsed(value: _Parsed | None, text: str, what: str) -> _Parsed:
    if value is None:
        raise UsageError(f"{text!r} is not {what}")
    return value


@dataclass(frozen=True, slots=True)
class WholeNumber(KnobKind):
    """A whole number of a range."""

    least: int
    most: int
    range_text: str = "{} to {}"

    def read(self, value: Any) -> int:  # noqa: ANN401
        return read_whole(value)

    def parse(self, text: str) -> int:
        return _parsed(whole_number(text.strip()), text, "a whole number")

    def toml(self, value: int) -> str:
        return str(value)

    def plain(self, value: int) -> int:
        return value

    def problems(self, value: int, knobs: Knobs) -> Iterator[str]:
        if not self.least <= value <= self.most:
            yield f"{value} is out of range: {self.range_text.format(self.least, self.most)}"


@dataclass(frozen=True, slots=True)
class Number(KnobKind):
    """A number of a range; `above` leaves out the least."""

    least: float
    most: float
    range_text: str
    above: bool = False

    def read(self, value: Any) -> float:  # noqa: ANN401
        return read_number(value)

    def parse(self, text: str) -> float:
        return _parsed(decimal_number(text.strip()), text, "a number")

    def toml(self, value: float) -> str:
        return format_number(value)

    def plain(self, value: float) -> float:
        return value

    def problems(self, value: float, knobs: Knobs) -> Iterator[str]:
        inside = math.isfinite(value) and self.least <= value <= self.most
        if not inside or (self.above and value == self.least):
            yield f"{format_number(value)} is out of range: {self.range_text}"


class BlockSizes(KnobKind):
    """A block size, or several with their shares."""

    def read(self, value: Any) -> tuple[BlockShare, ...]:  # noqa: ANN401
        return parse_blocks(value) if isinstance(value, str) else parse_blocks(str(read_size(value)))

    def parse(self, text: str) -> tuple[BlockShare, ...]:
        return parse_blocks(text)

    def toml(self, value: tuple[BlockShare, ...]) -> str:
        return quoted(format_blocks(value))

    def plain(self, value: tuple[BlockShare, ...]) -> str:
        return format_blocks(value)

    def document(self, value: tuple[BlockShare, ...]) -> object:
        return [{"block_bytes": share.block_bytes, "percent": share.percent} for share in value]

    def listed(self, text: str) -> Sequence[str]:
        """Take sizes and mixes apart; a mix goes on until its shares add up: `4k,4k:50,16k:50,64k` are three."""
        found, shares = list[str](), list[float]()
        for part in super().listed(text):
            _, colon, percent = part.partition(":")
            share = decimal_number(percent.strip().removesuffix("%")) or 0.0
            if not shares or (adds_up(shares) and not (colon and adds_up([*shares, share]))):
                found.append(part)
                shares = [share] if colon else []
            else:
                found[-1] += f",{part}"
                shares.append(share)
        return found

    def problems(self, value: tuple[BlockShare, ...], knobs: Knobs) -> Iterator[str]:
        step = SECTOR_BYTES if knobs.mode.is_direct else 1
        for share in value:
            size = share.block_bytes
            if not 1 <= size <= MAX_BLOCK_BYTES:
                yield f"{format_size(size)} is out of range: 512 to {format_size(MAX_BLOCK_BYTES)}"
            elif size % step:
                yield f"{size} is not a multiple of 512, which direct I/O needs: use such a size or --mode buffered"
            if not 0 < share.percent <= 100:
                yield f"a share of {share.percent:g} % is out of range: above 0 up to 100"
        percents = [share.percent for share in value]
        if not adds_up(percents):
            yield f"the shares of the mix add up to {sum(percents):g} %, not 100"


class ByteSize(KnobKind):
    """A number of bytes."""

    def read(self, value: Any) -> int:  # noqa: ANN401
        return read_size(value)

    def parse(self, text: str) -> int:
        return parse_size(text)

    def toml(self, value: int) -> str:
        return quoted(format_size(value))

    def plain(self, value: int) -> str:
        return format_size(value)

    def document(self, value: int) -> object:
        return value


class Offsets(KnobKind):
    """A distribution of random offsets."""

    def read(self, value: Any) -> Distribution:  # noqa: ANN401
        if not isinstance(value, str):
            raise WrongTypeError('a distribution such as "zipf:1.1" or "locality:50,30,20"')
        return parse_distribution(value)

    def parse(self, text: str) -> Distribution:
        return parse_distribution(text)

    def toml(self, value: Distribution) -> str:
        return quoted(format_distribution(value))

    def plain(self, value: Distribution) -> str:
        return format_distribution(value)

    def listed(self, text: str) -> Sequence[str]:
        """Take distributions apart; those that begin with a digit go on with the one before: `locality:60,40`."""
        found = list[str]()
        for part in super().listed(text):
            if found and part[:1].isdigit():
                found[-1] += f",{part}"
            else:
                found.append(part)
        return found

    def problems(self, value: Distribution, knobs: Knobs) -> Iterator[str]:
        problem = distribution_problem(value)
        if problem:
            yield f"{value.kind}: {problem}"


@dataclass(frozen=True, slots=True)
class OneOf(KnobKind):
    """One word of an enum; `named` reads other names of the same words as well."""

    words: type[StrEnum]
    named: Callable[[str], StrEnum] | None = None
    example: str = ""
    """Example for the error where `named` takes more than the words."""

    def read(self, value: Any) -> StrEnum:  # noqa: ANN401
        if self.named is None:
            return word_reader(self.words)(value)
        if not isinstance(value, str):
            raise WrongTypeError(self.example)
        return self.named(value)

    def parse(self, text: str) -> StrEnum:
        return self.words(text) if self.named is None else self.named(text)

    def toml(self, value: StrEnum) -> str:
        return quoted(value)

    def plain(self, value: StrEnum) -> str:
        return value.value
