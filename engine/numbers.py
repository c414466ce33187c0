"""Numbers in text, in ASCII digits alone: `int` and `float` also take `1_0`, digits of any script and blanks."""

from __future__ import annotations

import re

MOST_DIGITS = 40
"""More than any counter, size or time has; Python refuses some thousands with another error."""

_MOST_OF_FLOAT = 800
"""The smallest and the largest float, written without an exponent, have some 330 digits."""
_WHOLE = re.compile(r"[0-9]+")
_SIGNED = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]{1,4})?|nan|inf)", re.IGNORECASE | re.ASCII)


def whole_number(text: str | bytes) -> int | None:
    """Read a number of ASCII digits, None for anything else."""
    if isinstance(text, bytes):
        text = text.decode("ascii", "replace")
    return int(text) if len(text) <= MOST_DIGITS and _WHOLE.fullmatch(text) else None


def signed_number(text: str) -> int | None:
    """Read a whole number with or without a sign, None for anything else."""
    return int(text) if len(text) <= MOST_DIGITS and _SIGNED.fullmatch(text) else None


def decimal_number(text: str) -> float | None:
    """Read a number with or without sign, fraction and exponent, None for anything else.

    `nan` and `inf` are read, and a number too large for a float is infinite: the caller checks the range.
    """
    return float(text) if len(text) <= _MOST_OF_FLOAT and _DECIMAL.fullmatch(text) else None
