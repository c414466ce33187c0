"""A longer history of the few charted rows, where memory for all rows allows a short one only."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

import numpy as np

from collectors.model import FrameTable, Rows
from collectors.series import Series
from tui.history.rings import Ring

MOST_FOLLOWED = 32
"""Rows with a longer history; the least recently used one is dropped first."""


class Followed:
    """Rings of one row each; a vanished row has gaps until it is back."""

    def __init__(self, budget_bytes: int) -> None:
        self._budget_bytes = budget_bytes
        self._rings: OrderedDict[tuple[str, str], Ring] = OrderedDict()

    def follow(self, table: str, key: str, past: Series) -> None:
        """Keep the history of a row from now on, starting with its short one."""
        ring = Ring(tuple(past.values), self._budget_bytes)
        rows = Rows((key,), (key,))
        for position, time_ns in enumerate(past.times_ns.tolist()):
            now = {field_id: values[position : position + 1] for field_id, values in past.values.items()}
            ring.add(time_ns, FrameTable(rows, now))
        self._rings[table, key] = ring
        if len(self._rings) > MOST_FOLLOWED:
            self._rings.popitem(last=False)

    def of(self, table: str, key: str) -> Ring | None:
        """Find the ring of a row, and mark it as used."""
        ring = self._rings.get((table, key))
        if ring is not None:
            self._rings.move_to_end((table, key))
        return ring

    def add(self, time_ns: int, tables: Mapping[str, FrameTable]) -> None:
        """Add one frame."""
        for (name, key), ring in self._rings.items():
            table = tables.get(name)
            row = None if table is None else table.rows.positions.get(key)
            ring.add(time_ns, FrameTable(ring.rows, {} if row is None or table is None else _one(table, row)))


def _one(table: FrameTable, row: int) -> Mapping[str, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    return {field_id: column[row : row + 1] for field_id, column in table.columns.items()}
