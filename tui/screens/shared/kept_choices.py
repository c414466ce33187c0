"""What the operator chose for the tables of a screen: taken from what was kept, and kept when it changes."""

from __future__ import annotations

from collections.abc import Sequence

from collectors.model import Rows, Topology
from tui.kept import MOST_PINNED, PinnedRow, TableChoices
from tui.text.columns import UnitStyle
from tui.widgets.grid.rows import NAME
from tui.widgets.grid.table import Grid


class GridChoices:
    """The choices of one grid; pinned rows that are absent are kept until they are back."""

    def __init__(self, grid: Grid, kept: TableChoices) -> None:
        """Apply what was kept; the pinned rows follow once there are rows."""
        self._grid = grid
        self._absent = list(kept.pinned)
        self._rows: Rows | None = None
        known = {NAME, *(column.field_id for column in grid.offered)}
        if kept.sort in known or kept.reverse:
            grid.set_sort(kept.sort if kept.sort in known else grid.default_sort, kept.reverse)
        units = next((style for style in UnitStyle if style.name.lower() == kept.units), None)
        if units is not None:
            grid.set_units(units)
        if kept.idle_hidden:
            grid.hide_idle(True)

    def find_pinned(self, topology: Topology) -> None:
        """Pin the rows that have appeared since."""
        table = self._grid.table
        if not self._absent or table is None or table.rows is self._rows:
            return
        self._rows = table.rows
        finder = PinnedFinder(table.rows, topology)
        found = {pin: key for pin in self._absent if (key := finder.key_of(pin)) is not None}
        if found:
            self._absent = [pin for pin in self._absent if pin not in found]
            self._grid.pin_rows(tuple(dict.fromkeys((*self._grid.pinned_keys, *found.values()))))

    def present(self, topology: Topology | None) -> TableChoices:
        """Return what is chosen now."""
        grid, first = self._grid, next(iter(UnitStyle))
        table = grid.table
        pinned = () if table is None else pinned_rows(grid.pinned_keys, table.rows, topology)
        return TableChoices(
            "" if grid.sorting.field_id == grid.default_sort else grid.sorting.field_id,
            grid.sorting.reverse,
            "" if grid.unit_style is first else grid.unit_style.name.lower(),
            grid.idle_hidden,
            (*pinned, *self._absent)[:MOST_PINNED],
        )


def pinned_rows(keys: Sequence[str], rows: Rows, topology: Topology | None) -> tuple[PinnedRow, ...]:
    """Identify pinned rows, those that are gone by their key alone."""
    names = {key: rows.names[row] for key in keys if (row := rows.positions.get(key)) is not None}
    return tuple(PinnedRow(key, names.get(key, ""), _identity(key, topology)) for key in keys)


class PinnedFinder:
    """Finds pinned rows among those of a table, which may be many thousand."""

    def __init__(self, rows: Rows, topology: Topology) -> None:
        self._rows = rows
        self._by_identity: dict[str, list[str]] = {}
        self._by_name: dict[tuple[str, str], list[str]] = {}
        for key, name in zip(rows.keys, rows.names, strict=True):
            identity = _identity(key, topology)
            self._by_identity.setdefault(identity, []).append(key)
            self._by_name.setdefault((identity, name), []).append(key)

    def key_of(self, pin: PinnedRow) -> str | None:
        """Find a row by its key, else by the device's persistent id, else by its name; None if that is ambiguous.

        Kernel names may belong to another device after a restart, so a name counts only where the device has no id.
        """
        if pin.key in self._rows.positions:
            return pin.key
        same_name = self._by_name.get((pin.identity, pin.name), [])
        same_id = self._by_identity.get(pin.identity, []) if pin.identity else []
        return next((found[0] for found in (same_name, same_id) if len(found) == 1), None)


def _identity(key: str, topology: Topology | None) -> str:
    device = None if topology is None else topology.devices.get(key)
    return "" if device is None else device.persistent_id
