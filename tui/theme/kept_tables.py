"""Order, units, hidden idle rows and pinned rows of each table, in a file of their own beside the settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from tui.theme.kept_json import KeptJson

MOST_PINNED = 200
"""Pinned rows that are kept for a table."""


class PinnedRow(Struct, frozen=True):
    """A row by what identifies it after a restart too, when keys are others."""

    key: str
    name: str
    identity: str = ""
    """Persistent id of its device, empty if it has none."""


class TableChoices(Struct, frozen=True):
    """What was chosen for one table; the defaults stand for those of the screen."""

    sort: str = ""
    """Field id; empty for the order of a new table."""
    reverse: bool = False
    units: str = ""
    """Name of a unit style in lower case; empty for the first one."""
    idle_hidden: bool = False
    pinned: tuple[PinnedRow, ...] = ()


class KeptTables:
    """Owns the choices; without a file they are kept until the end of the process."""

    def __init__(self, file: Path | None = None) -> None:
        """Read the file, if there is one; entries of a wrong form are left out."""
        self._json = KeptJson(file, "order, units and pinned rows")
        self._chosen = {table: _read(entry) for table, entry in self._json.read().items() if isinstance(entry, dict)}
        self._changed = False

    @property
    def problem(self) -> str:
        """Why the file was not read, in one line; empty if it was."""
        return self._json.problem

    def of(self, table: str) -> TableChoices:
        """Return what was chosen for a table."""
        return self._chosen.get(table, TableChoices())

    def keep(self, table: str, choices: TableChoices) -> None:
        """Keep the choices of a table; `write` writes them."""
        self._changed |= choices != self.of(table)
        self._chosen[table] = choices

    def write(self) -> str:
        """Write what has changed since; returns why it was not written, else nothing."""
        if not self._changed:
            return ""
        self._changed = False
        entries = {table: _document(choices) for table, choices in self._chosen.items()}
        return self._json.write({table: entry for table, entry in entries.items() if entry})


def _document(choices: TableChoices) -> dict[str, object]:
    """Write what differs from the default."""
    pins = [{"key": row.key, "name": row.name, "id": row.identity} for row in choices.pinned[:MOST_PINNED]]
    entries = {
        "sort": choices.sort,
        "reverse": choices.reverse,
        "units": choices.units,
        "idle_hidden": choices.idle_hidden,
        "pinned": pins,
    }
    return {name: value for name, value in entries.items() if value}


def _read(entry: Mapping[str, object]) -> TableChoices:
    pinned = entry.get("pinned")
    return TableChoices(
        _text(entry.get("sort")),
        entry.get("reverse") is True,
        _text(entry.get("units")),
        entry.get("idle_hidden") is True,
        tuple(_pin(row) for row in pinned[:MOST_PINNED] if isinstance(row, dict)) if isinstance(pinned, list) else (),
    )


def _pin(row: Mapping[str, object]) -> PinnedRow:
    return PinnedRow(_text(row.get("key")), _text(row.get("name")), _text(row.get("id")))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
