"""Lines of a parameter file in the style of NDISK, and their values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.errors import UsageError
from engine.jobformats.source_location import SourceLocation, quoted
from engine.numbers import decimal_number

_LINE = re.compile(r"([A-Za-z_][A-Za-z_0-9]*)\s*->(.*)")
_COMMENT = re.compile(r"(?:^|\s)-(?:\s.*)?$")
_MOST_VALUES = 256


@dataclass(frozen=True, slots=True)
class Parameter:
    """One line: its name, its values, and where it stands."""

    name: str
    words: tuple[str, ...]
    location: SourceLocation

    def numbers(self, least: float, most: float) -> tuple[float, ...]:
        """Read all values as numbers in a range.

        Raises:
            UsageError: there are none or too many, or one is no number or out of range.
        """
        if not 1 <= len(self.words) <= _MOST_VALUES:
            raise self.location.error(self.name, f"{len(self.words)} values: give 1 to {_MOST_VALUES}")
        return tuple(self._number(word, least, most) for word in self.words)

    def number(self, least: float, most: float) -> float:
        """Read the one value.

        Raises:
            UsageError: as numbers, or there are several.
        """
        values = self.numbers(least, most)
        if len(values) > 1:
            raise self.location.error(self.name, f"{len(values)} values: give one (text after ' - ' is a comment)")
        return values[0]

    def whole(self, values: Sequence[float]) -> tuple[int, ...]:
        """Take numbers as whole ones.

        Raises:
            UsageError: one is not.
        """
        for value in values:
            if value != int(value):
                raise self.location.error(self.name, f"{value:g} is not a whole number")
        return tuple(map(int, values))

    def _number(self, word: str, least: float, most: float) -> float:
        value = decimal_number(word)
        if value is None or not least <= value <= most:
            raise self.location.error(self.name, f"{quoted(word)} is no number from {least:g} to {most:g}")
        return value


def parameters(text: str, path: str) -> Iterator[Parameter]:
    """Yield the parameters of a file.

    Raises:
        UsageError: a line is none.
    """
    for number, raw in enumerate(text.splitlines(), 1):
        line, location = raw.strip(), SourceLocation(path, number)
        if not line or line.startswith("*"):
            continue
        match = _LINE.fullmatch(line)
        if not match:
            raise UsageError(f"{location}: {quoted(line)}: write NAME -> value, or * before a comment")
        values = _COMMENT.sub("", match[2]).strip()
        yield Parameter(match[1].upper(), tuple(values.strip("()").replace(",", " ").split()), location)
