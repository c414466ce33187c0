"""Mapping of a tracer's rows to keys of the disk table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from collectors.kernel.identity import number_of, storable_name
from collectors.model import MISSING, Kind, Rows
from collectors.tables.block.trace_schema import TRACE

_PEAKS = np.flatnonzero([column.kind is Kind.PEAK for column in TRACE.columns])
_COUNTERS = np.array([column.kind is Kind.COUNTER for column in TRACE.columns])


class TracedMembers:
    """Rows of the trace table; a new row has counted from 0.

    The tracer identifies devices by number and name, which the kernel reuses: counts of a previous device are
    subtracted when the disk table has a new key for the name.
    """

    def __init__(self) -> None:
        self.rows = Rows((), ())
        """Rows present in the disk table, in the tracer's order."""
        self._place_of_row = np.zeros(0, np.intp)
        self._shown = np.zeros(0, np.intp)
        self._keys: list[str | None] = []
        self._base: dict[int, NDArray[np.uint64]] = {}
        self._fresh = np.zeros(0, np.intp)
        self._source: tuple[int, Rows] | None = None

    def is_current(self, generation: int, disks: Rows) -> bool:
        """Whether no row was added or removed on either side since the last update."""
        return self._source is not None and self._source[0] == generation and self._source[1] is disks

    def update(
        self,
        generation: int,
        disks: Rows,
        names: Sequence[str],
        numbers: NDArray[np.uint32],
        values: NDArray[np.uint64],
    ) -> None:
        """Map the rows again; counts in `values` of a row that changed its key belong to the previous device."""
        keys = _keys(disks, names, numbers)
        known = self._keys + [None] * (len(keys) - len(self._keys))
        # A row that had no key before has counted for this device only.
        pairs = enumerate(zip(known, keys, strict=True))
        fresh = [row for row, (old, new) in pairs if old is not None and new is not None and old != new]
        self._base |= {row: np.where(_COUNTERS, values[row], np.uint64(0)) for row in fresh}
        self._fresh = np.array(fresh, np.intp)
        self._keys = [new if new is not None else old for old, new in zip(known, keys, strict=True)]
        self._source = generation, disks
        self._show(keys, names)

    def of(self, values: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Values of the rows in the table, counted since their device appeared; modifies the given array."""
        if self._base:
            values[list(self._base)] -= np.stack(list(self._base.values()))
        values[np.ix_(self._fresh, _PEAKS)] = MISSING
        self._fresh = np.zeros(0, np.intp)
        return values if len(self._shown) == len(values) else values[self._shown]

    def position(self, row: NDArray[np.uint32]) -> NDArray[np.intp]:
        """Position in the table of each of the tracer's rows, -1 for rows that are not in it."""
        return self._place_of_row[row]

    def _show(self, keys: Sequence[str | None], names: Sequence[str]) -> None:
        last_of_key = {key: row for row, key in enumerate(keys) if key is not None}
        shown = sorted(last_of_key.values())
        rows = Rows(tuple(str(keys[row]) for row in shown), tuple(storable_name(names[row]) for row in shown))
        self._shown = np.array(shown, np.intp)
        self._place_of_row = np.full(len(keys), -1, np.intp)
        self._place_of_row[self._shown] = np.arange(len(shown))
        if rows.keys != self.rows.keys:
            self.rows = rows


def _keys(disks: Rows, names: Sequence[str], numbers: NDArray[np.uint32]) -> list[str | None]:
    """Key of each row in the disk table, None if it has no device of this name and number."""
    of_name = dict(zip(disks.names, disks.keys, strict=True))
    found = [of_name.get(storable_name(name)) for name in names]
    return [
        key if key is not None and number_of(key) == tuple(number) else None
        for key, number in zip(found, numbers.tolist(), strict=True)
    ]
