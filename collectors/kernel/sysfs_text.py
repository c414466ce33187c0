"""Values of sysfs attributes as Python values; what is missing or odd is None or empty."""

from __future__ import annotations

from collectors.kernel.identity import storable_name


def text(value: bytes | None) -> str:
    """Decode text without the padding drivers leave; bytes that are not UTF-8 are escaped."""
    return "" if value is None else storable_name(value.decode("utf-8", "surrogateescape")).strip(" \t\n\0")


def number(value: bytes | None) -> int | None:
    """Parse a decimal number."""
    if value is None:
        return None
    digits = value.strip()
    return int(digits) if digits.isdigit() else None


def flag(value: bytes | None) -> bool | None:
    """Parse 0 or 1."""
    count = number(value)
    return None if count is None else count != 0
