"""Numbers, sizes, times and switches as fio writes them (fio(1), PARAMETER TYPES)."""

from __future__ import annotations

import math
import re

from msgspec import Struct

from engine.job.formats.fio_arithmetic import computed, is_sum
from engine.job.formats.fio_sections import Given, Option
from engine.job.formats.text_file import quoted
from engine.text import decimal_number

_INTEGER = re.compile(r"(0x[0-9a-f]{1,16}|[0-9]{1,19})(?:([kmgtp])(ib)?[ib]?|b)?", re.IGNORECASE | re.ASCII)
_TIME = re.compile(r"([0-9]{1,19})\s*(d|h|m|s|sec|ms|msec|us|usec)?", re.IGNORECASE | re.ASCII)
_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}
_PREFIXES = "kmgtp"
_MAX = 2**63 - 1
_SWITCHES = {None: True, "1": True, "0": False}


class Units(Struct, frozen=True):
    """What a `k` is: with `kb_base=1024`, the default, `4k` is 4096 and `4kib` 4000; with 1000 it is the reverse.

    `4ki` is `4k` with both, which fio does and its manual denies.
    """

    kb_base: int = 1024

    def integer(self, option: Option, text: str | None = None, *, most: int = _MAX) -> int:
        """Read a whole number, `64k`, `0x10`; `text` is a part of the option's value, None all of it.

        Raises:
            UsageError: it is none, or more than `most`.
        """
        text = option.text if text is None else text
        if is_sum(text.strip()):
            return self._sum(option, text.strip(), most)
        match = _INTEGER.fullmatch(text.strip())
        if not match:
            raise option.error(f"{quoted(text)} is not a whole number: write it like 64k")
        number, prefix, binary = match.groups()
        base = 1024 if (self.kb_base == 1024) != bool(binary) else 1000
        value: int = int(number, 16 if number[:2].lower() == "0x" else 10)
        value *= base ** (_PREFIXES.index(prefix.lower()) + 1) if prefix else 1
        if value > most:
            raise option.error(f"{quoted(text)} is out of range: at most {most}")
        return value

    def _sum(self, option: Option, text: str, most: int) -> int:
        value = computed(text, lambda number: self.integer(option, number))
        if value is None or value > most:
            raise option.error(f"{quoted(text)} is not a whole number from 0 to {most}: write the result")
        return value


def units_of(given: Given) -> Units:
    """Take the option that says what units mean.

    Raises:
        UsageError: it is neither 1000 nor 1024.
    """
    option = given.take("kb_base")
    if option is None:
        return Units()
    if option.text not in ("1000", "1024"):
        raise option.error(f"{quoted(option.text)} is not 1000 or 1024")
    return Units(int(option.text))


def seconds(option: Option, unit: str = "s") -> float:
    """Read a time; a bare number is in `unit`, most often seconds.

    Raises:
        UsageError: it is none.
    """
    match = _TIME.fullmatch(option.text)
    if not match:
        hint = " (arithmetic with times is not read: write the result)" if is_sum(option.text) else ""
        raise option.error(f"{quoted(option.text)} is not a time: write it like 30s, 5m or 500ms{hint}")
    unit = (match[2] or unit).lower().removesuffix("ec")
    return int(match[1]) * _SECONDS[unit]


def switch(option: Option | None, *, default: bool = False) -> bool:
    """Read a switch, which is on without a value.

    Raises:
        UsageError: its value is neither 0 nor 1.
    """
    if option is None:
        return default
    if option.value not in _SWITCHES:
        raise option.error(f"{quoted(option.value or '')} is not 0 or 1")
    return _SWITCHES[option.value]


def fraction(option: Option, text: str) -> float:
    """Read a number with decimals, such as a share in percent.

    Raises:
        UsageError: it is none, negative or not finite.
    """
    value = decimal_number(text.strip().removesuffix("%"))
    if value is None or not 0 <= value < math.inf:
        raise option.error(f"{quoted(text)} is not a number from 0 up")
    return value


def by_direction(text: str) -> tuple[str, str]:
    """Cut a list into its part for reads and its part for writes; empty means the default (bs of fio(1)).

    A last part without a comma after it holds for all that follow; a third one is for trims.
    """
    reads, *others = text.split(",")
    return reads.strip(), others[0].strip() if others else reads.strip()
