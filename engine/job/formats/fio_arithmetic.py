"""Sums in the values of fio: keywords such as $pagesize, and expressions in parentheses (fio(1), JOB FILE FORMAT)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from fractions import Fraction

_TOKEN = re.compile(r"\s*(?:([-+*/()])|([0-9][0-9a-zA-Z]*))")
_OPERATOR = re.compile(r"[-+*/]")
_KEYWORDS: dict[str, Callable[[], int]] = {
    "$pagesize": lambda: os.sysconf("SC_PAGE_SIZE"),
    "$mb_memory": lambda: os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20,
    "$ncpus": lambda: os.sysconf("SC_NPROCESSORS_ONLN"),
}
_DEEPEST = 50


def filled_in(value: str) -> str:
    """Replace keywords by what they are on this host; what is computed with them gets parentheses."""
    if not any(keyword in value for keyword in _KEYWORDS):
        return value
    for keyword, number in _KEYWORDS.items():
        value = value.replace(keyword, str(number()))
    return ",".join(f"({part})" if _OPERATOR.search(part) and "(" not in part else part for part in value.split(","))


def is_sum(text: str) -> bool:
    """Whether a value has to be computed."""
    return text.startswith("(") and text.endswith(")")


def computed(text: str, number: Callable[[str], int]) -> int | None:
    """Compute an expression of numbers, which `number` reads with their units; None if it is not a whole number."""
    tokens, position = [], 0
    while position < len(text.rstrip()):
        match = _TOKEN.match(text, position)
        if not match:
            return None
        tokens.append(match[1] or match[2])
        position = match.end()
    try:
        reader = _TermReader(tokens, number)
        value = reader.added()
    except (IndexError, ZeroDivisionError, ValueError):
        return None
    return int(value) if reader.is_over and value.denominator == 1 and value >= 0 else None


class _TermReader:
    """Reads an expression by recursive descent."""

    def __init__(self, tokens: list[str], number: Callable[[str], int]) -> None:
        self._tokens, self._number, self._depth = tokens[::-1], number, 0

    @property
    def is_over(self) -> bool:
        return not self._tokens

    def added(self) -> Fraction:
        value = self._multiplied()
        while self._tokens and self._tokens[-1] in "+-":
            sign = 1 if self._tokens.pop() == "+" else -1
            value += sign * self._multiplied()
        return value

    def _multiplied(self) -> Fraction:
        value = self._single()
        while self._tokens and self._tokens[-1] in "*/":
            value = value * self._single() if self._tokens.pop() == "*" else value / self._single()
        return value

    def _single(self) -> Fraction:
        token = self._tokens.pop()
        if token[0].isdigit():
            return Fraction(self._number(token))
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ValueError(token)
        value = self.added()
        if self._tokens.pop() != ")":
            raise ValueError(token)
        return value
