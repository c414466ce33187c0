"""All devices of one class of sysfs with their attributes, as text."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from collectors.kernel.identity import storable_name
from collectors.kernel.sysfs_text import text
from engine._native import read_attributes

Facts = Mapping[str, str]

_UNSET = frozenset({"(null)", "<NULL>", "unknown", "Unknown"})
"""Values that drivers print for an unsupported attribute."""


def read_class(sysfs: str, name: str, attributes: Sequence[str]) -> dict[str, Facts]:
    """Attributes of every entry of SYSFS/class/NAME, by entry; empty text where one is missing or not set.

    Entries that vanish meanwhile have empty attributes; a class missing from the kernel has no entries.
    """
    folder = Path(sysfs, "class", name)
    try:
        entries = sorted(os.listdir(folder))  # noqa: PTH208 names only
        values = read_attributes(str(folder), entries, attributes)
    except OSError:
        return {}
    return {
        storable_name(entry): dict(zip(attributes, map(_set_text, found), strict=True))
        for entry, found in zip(entries, values, strict=True)
    }


def _set_text(value: bytes | None) -> str:
    found = text(value)
    return "" if found in _UNSET else found


def class_entries(sysfs: str, name: str) -> list[str]:
    """Names of the entries of a class; none if the kernel does not have it."""
    try:
        return sorted(os.listdir(Path(sysfs, "class", name)))  # noqa: PTH208 names only
    except OSError:
        return []


def class_link(sysfs: str, name: str, entry: str) -> str:
    """Link target of an entry of a class; empty if it cannot be read."""
    try:
        return storable_name(os.readlink(Path(sysfs, "class", name, entry)))  # noqa: PTH115 text, not a Path
    except OSError:
        return ""
