"""What a plan is known by in the file of its trials: all that makes trials of another plan useless for it."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from msgspec import NODEFAULT, Struct, structs

_FIRST_FIELDS: Mapping[str, int] = MappingProxyType({"JobSpec": 32, "Knobs": 13, "FleetKnobs": 14})
"""How many fields these classes had while files were known by all of them; later ones stand behind."""


def identities(values: Sequence[object], hosts: Sequence[str]) -> tuple[str, str]:
    """Return what files of a plan are known by, and what earlier versions wrote there.

    Fields that are as by default do not count, so that files outlast fields that come later. A default that changes
    changes what was measured: its field needs another name then.
    """
    found = []
    for is_now in (True, False):
        words = (each if isinstance(each, str) else _told(each, is_now=is_now) for each in values)
        known = _hash(*words)
        found.append(_hash(known, *hosts) if hosts else known)
    return found[0], found[1]


def _hash(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]


def _told(value: object, *, is_now: bool) -> str:
    """Write a value as its `repr`, without fields that are as by default; earlier versions kept them."""
    if isinstance(value, tuple | list):
        items = ", ".join(_told(each, is_now=is_now) for each in value)
        if isinstance(value, list):
            return f"[{items}]"
        return f"({items},)" if len(value) == 1 else f"({items})"
    if not isinstance(value, Struct) and not dataclasses.is_dataclass(value):
        return repr(value)
    name = type(value).__name__
    kept = 0 if is_now else _FIRST_FIELDS.get(name, 1 << 10)
    fields = (
        f"{field}={_told(getattr(value, field), is_now=is_now)}"
        for position, (field, default) in enumerate(_fields(value))
        if position < kept or getattr(value, field) != default
    )
    return f"{name}({', '.join(fields)})"


def _fields(value: object) -> Iterator[tuple[str, object]]:
    """Yield the fields of a value with their defaults."""
    if isinstance(value, Struct):
        for field in structs.fields(value):
            has_factory = field.default_factory is not NODEFAULT
            yield field.name, field.default_factory() if has_factory else field.default
    elif dataclasses.is_dataclass(value):
        for each in dataclasses.fields(value):
            make = each.default_factory
            yield each.name, each.default if make is dataclasses.MISSING else make()
