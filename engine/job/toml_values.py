"""Values of job files: which types of TOML give which values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import TypeVar

from engine.errors import UsageError
from engine.job.sizes import parse_duration, parse_size

_Word = TypeVar("_Word", bound=StrEnum)


class WrongTypeError(Exception):
    """A value of another type than the key takes; the text says which it takes."""


def read_text(value: object) -> str:
    """Take text."""
    if not isinstance(value, str):
        raise WrongTypeError('text such as "name"')
    return value


def read_whole(value: object) -> int:
    """Take a whole number."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise WrongTypeError("a whole number")
    return value


def read_number(value: object) -> float:
    """Take any number."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise WrongTypeError("a number")
    return _float(value)


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        raise WrongTypeError("a number that any disk could reach") from None


def read_size(value: object) -> int:
    """Take bytes, or text with a unit."""
    if isinstance(value, str):
        return parse_size(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise WrongTypeError('a size such as "4k", or bytes')


def read_jump(value: object) -> int:
    """Take bytes forwards or, with a minus, backwards."""
    if isinstance(value, str) and value.strip().startswith("-"):
        return -parse_size(value.strip()[1:])
    return read_size(value)


def read_switch(value: object) -> bool:
    """Take true or false."""
    if not isinstance(value, bool):
        raise WrongTypeError("true or false")
    return value


def read_duration(value: object) -> float:
    """Take seconds, or text with a unit."""
    if isinstance(value, str):
        return parse_duration(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _float(value)
    raise WrongTypeError('a duration such as "30s", or seconds')


def read_durations(value: object) -> tuple[float, ...]:
    """Take durations, each once and in ascending order.

    Raises:
        UsageError: a text is no duration.
    """
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list | tuple):
        raise WrongTypeError('durations such as "5ms,10ms", or a list of them')
    return tuple(sorted({read_duration(each) for each in value}))


def word_reader(kind: type[_Word]) -> Callable[[object], _Word]:
    """Make a reader of the words of an enum."""

    def read(value: object) -> _Word:
        if not isinstance(value, str) or value not in list(kind):
            raise not_one_of(kind)
        return kind(value)

    return read


def not_one_of(words: Iterable[str]) -> WrongTypeError:
    """Build the error for a word that is none of those known."""
    return WrongTypeError("one of " + ", ".join(f'"{word}"' for word in words))


def quoted(text: str) -> str:
    """Write a TOML basic string, which holds Unicode only.

    Raises:
        LunscopeError: the text has bytes that are no UTF-8.
    """
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise UsageError(f"{text!a}: a job file cannot hold a name that is not UTF-8: rename it or use a link")
    escaped = "".join(
        "\\" + letter if letter in '"\\' else letter if letter.isprintable() else f"\\U{ord(letter):08x}"
        for letter in text
    )
    return f'"{escaped}"'
