"""Values of sysfs attributes as Python values; missing or invalid ones are None or empty."""

from __future__ import annotations

from collectors.kernel.identity import storable_name
from engine.text import whole_number


def text(value: bytes | None) -> str:
    """Decode text without the padding of drivers; bytes that are not UTF-8 are escaped."""
    return "" if value is None else storable_name(value.decode("utf-8", "surrogateescape")).strip(" \t\n\0")


def number(value: bytes | None) -> int | None:
    """Parse a decimal number of up to 64 bits."""
    found = None if value is None else whole_number(value.strip())
    return found if found is not None and found < 1 << 64 else None


def flag(value: bytes | None) -> bool | None:
    """Parse 0 or 1."""
    count = number(value)
    return None if count is None else count != 0
