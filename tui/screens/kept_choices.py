"""What the operator chose for the tables of a screen: taken from what was kept, and kept when it changes."""

from __future__ import annotations

from collections.abc import Sequence

from collectors.model import Rows, Topology
from tui.text.columns import UnitStyle
from tui.theme.kept_tables import PinnedRow, TableChoices
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
        rows = table.rows
        self._rows = rows
        found = {pin: key for pin in self._absent if (key := key_of(pin, rows, topology)) is not None}
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
            (*pinned, *self._absent),
        )


def pinned_rows(keys: Sequence[str], rows: Rows, topology: Topology | None) -> tuple[PinnedRow, ...]:
    """Identify pinned rows, those that are gone by their key alone."""
    names = {key: rows.names[row] for key in keys if (row := rows.positions.get(key)) is not None}
    return tuple(PinnedRow(key, names.get(key, ""), _identity(key, topology)) for key in keys)


def key_of(pin: PinnedRow, rows: Rows, topology: Topology) -> str | None:
    """Find the row of a pin: by its key, else by the device's persistent id, else by its name; None if ambiguous.

    Kernel names may belong to another device after a restart, so a name counts only where the device has no id.
    """
    if pin.key in rows.positions:
        return pin.key
    named = zip(rows.keys, rows.names, strict=True)
    found = [(key, name) for key, name in named if _identity(key, topology) == pin.identity]
    same_name = [key for key, name in found if name == pin.name]
    if len(same_name) == 1:
        return same_name[0]
    return found[0][0] if pin.identity and len(found) == 1 else None


def _identity(key: str, topology: Topology | None) -> str:
    device = None if topology is None else topology.devices.get(key)
    return "" if device is None else device.persistent_id
