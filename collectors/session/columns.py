"""Many records of one dataclass as JSON, stored by columns: one list per field."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, fields
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from collectors.model import Tier
from collectors.session.format import DamageError

_T = TypeVar("_T")


def columns_of(cls: type[_T], records: Iterable[_T]) -> dict[str, list[Any]]:
    """Convert records of a dataclass to columns."""
    everyone = tuple(records)
    return {name: [getattr(record, name) for record in everyone] for name in get_type_hints(cls)}


def records_of(cls: type[_T], columns: object) -> list[_T]:
    """Undo `columns_of`; unknown fields of later versions are ignored, missing ones get their default.

    Raises:
        DamageError: a column is missing, too short or of another type.
    """
    if not isinstance(columns, dict):
        raise DamageError(f"no {cls.__name__} columns")
    hints = get_type_hints(cls)
    count = max((len(values) for values in columns.values() if isinstance(values, list)), default=0)
    defaults = {field.name: field.default for field in fields(cls)}  # type: ignore[arg-type] # a dataclass
    known = []
    for name, hint in hints.items():
        default = defaults.get(name, MISSING)
        values = columns.get(name, None if default is MISSING else [default] * count)
        known.append(_typed_column(hint, values))
    if any(len(values) != count for values in known):
        raise DamageError(f"{cls.__name__} columns of different length")
    return [cls(*values) for values in zip(*known, strict=True)]


def _typed_column(hint: object, values: object) -> list[Any]:
    if not isinstance(values, list):
        raise DamageError("no such field of the records")
    plain = set(get_args(hint) or (hint,))
    if {type(value) for value in values} <= plain:
        return values
    return [typed(hint, value) for value in values]


def typed(hint: object, value: object) -> Any:  # noqa: ANN401 the hint says what it is
    """Return a value checked against the type of its field; lists become tuples.

    Raises:
        DamageError: it is of another type.
    """
    if get_origin(hint) is UnionType:
        return None if value is None else typed(get_args(hint)[0], value)
    if get_origin(hint) is tuple and isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return tuple(value)
    if hint is Tier and type(value) is int and value in set(Tier):
        return Tier(value)
    if type(value) is hint:
        return value
    raise DamageError("a field of another type")
