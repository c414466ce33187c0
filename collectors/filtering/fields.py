"""The fields that a filter may name: by id, by title, or by a short form that only one field has."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from collectors.field import Field, Unit
from engine.text import short_text

_UNIT_ENDINGS = ("_bytes_per_s", "_per_s", "_pct", "_ms", "_bytes")
_MOST_NAMED = 8
_LONGEST_NAME = 24


class FilterField(Struct, frozen=True):
    """One field of a filter: a figure with its unit, or a text."""

    id: str
    title: str = ""
    unit: Unit | None = None
    """Unit of the figure; None for a text."""

    @property
    def short(self) -> str:
        """The id without its unit."""
        ending = next((one for one in _UNIT_ENDINGS if self.id.endswith(one)), "")
        return self.id.removesuffix(ending)


def figures_of(fields: Iterable[Field]) -> tuple[FilterField, ...]:
    """Fields of the registry for a filter."""
    return tuple(FilterField(field.id, field.title, field.unit) for field in fields)


def texts_of(*ids: str) -> tuple[FilterField, ...]:
    """Text fields with these ids."""
    return tuple(FilterField(field_id) for field_id in ids)


class FilterFields:
    """The fields of one table, found by name."""

    def __init__(self, fields: Iterable[FilterField]) -> None:
        """Take the fields, most important first; the first of two with one id counts."""
        self.all = tuple({field.id: field for field in reversed(tuple(fields))}.values())[::-1]
        self._forms: tuple[Callable[[FilterField], str], ...] = (
            lambda field: field.id,
            lambda field: field.title.casefold().replace(" ", "_"),
            lambda field: field.short,
        )

    def find(self, name: str) -> FilterField | str:
        """Return the field of a name, ignoring case and for `-` taking `_`; else one line on what is wrong."""
        wanted = name.casefold().replace("-", "_")
        for form in self._forms:
            found = [field for field in self.all if form(field) == wanted]
            if len(found) == 1:
                return found[0]
        begun = self.begun_by(wanted)
        if len(begun) == 1:
            return begun[0]
        shown = short_text(name, _LONGEST_NAME)
        if begun:
            return f"{shown!r} may be {_listed(begun)}"
        return f"no field {shown!r}; there are {_listed(self.all)}"

    def begun_by(self, start: str) -> tuple[FilterField, ...]:
        """Fields whose id or title starts with a text."""
        wanted = start.casefold().replace("-", "_")
        return tuple(field for field in self.all if any(form(field).startswith(wanted) for form in self._forms))


def _listed(fields: tuple[FilterField, ...]) -> str:
    more = f" and {len(fields) - _MOST_NAMED} more" if len(fields) > _MOST_NAMED else ""
    return ", ".join(field.short for field in fields[:_MOST_NAMED]) + more
