"""Text that comes from devices, processes, mounts and files: made safe to print, read as numbers; numbers as text."""

from __future__ import annotations

import math
import re
import unicodedata
from decimal import Decimal

MOST_DIGITS = 40
"""More than any counter, size or time has; Python refuses some thousands with another error."""

_MOST_OF_FLOAT = 800
"""The smallest and the largest float, written without an exponent, have some 330 digits."""
_SIGNED = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]{1,4})?|nan|inf)", re.IGNORECASE | re.ASCII)


def whole_number(text: str | bytes) -> int | None:
    """Read a number of ASCII digits, None for anything else."""
    return int(text) if len(text) <= MOST_DIGITS and text.isascii() and text.isdigit() else None


def signed_number(text: str) -> int | None:
    """Read a whole number with or without a sign, None for anything else."""
    return int(text) if len(text) <= MOST_DIGITS and _SIGNED.fullmatch(text) else None


def decimal_number(text: str) -> float | None:
    """Read a number with or without sign, fraction and exponent, None for anything else.

    `nan` and `inf` are read, and a number too large for a float is infinite: the caller checks the range.
    """
    return float(text) if len(text) <= _MOST_OF_FLOAT and _DECIMAL.fullmatch(text) else None


def three_digits(value: float) -> str:
    """Write a number with three significant digits, and all that are before the point; never with an exponent."""
    if not math.isfinite(value) or abs(value) >= 999.5:
        return f"{value:.0f}"
    return format(Decimal(f"{value:.3g}"), "f")


_PREFIXES = ("", "k", "M", "G", "T", "P")


def with_prefix(value: float, step: float = 1000.0) -> tuple[str, str]:
    """Write three digits, and the prefix of the power of `step` that they count: 1500000 is ("1.5", "M")."""
    power = 0
    # What would be written as 1000 has the next prefix.
    while step - 0.5 <= abs(value) < math.inf and power + 1 < len(_PREFIXES):
        value, power = value / step, power + 1
    return three_digits(value), _PREFIXES[power]


MOST_SHOWN = 1000
"""Characters of a message that are shown: more than any path has, less than a screen."""


def safe_text(text: str) -> str:
    r"""Make everything that is not plain printable text visible instead of effective.

    Control characters, escapes, direction and zero-width marks, private and unassigned characters become `\x1b`,
    `\u202e` and the like; bytes that were not UTF-8 (surrogate escapes) become `\xff`; odd spaces become spaces. The
    result has no line breaks. Markup characters are left: who prints with a markup language must pass text apart.
    """
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _visible(character) for character in text)


def short_text(text: str, most: int = MOST_SHOWN) -> str:
    """Shorten text of any length to its beginning and its end, so that an error stays a line that can be read."""
    if len(text) <= most:
        return text
    head = most * 2 // 3
    return f"{text[:head]} ... ({len(text) - most} characters left out) ... {text[head - most :]}"


def _visible(character: str) -> str:
    code = ord(character)
    if unicodedata.category(character) == "Zs":
        return " "
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
