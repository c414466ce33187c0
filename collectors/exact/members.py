"""Whose counters the rows of a tracer are: keys of the disk table instead of kernel names."""

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
    """Rows of the trace table; a row that begins has counted from 0.

    The tracer knows devices by number and name, which are given again: what it has counted of another life of a device
    is taken off when the disk table knows the new one by another key.
    """

    def __init__(self) -> None:
        self.rows = Rows((), ())
        """Those that the disk table has, in the tracer's order."""
        self._place_of_row = np.zeros(0, np.intp)
        self._shown = np.zeros(0, np.intp)
        self._keys: list[str | None] = []
        self._base: dict[int, NDArray[np.uint64]] = {}
        self._fresh = np.zeros(0, np.intp)
        self._seen: tuple[int, Rows] | None = None

    def is_current(self, generation: int, disks: Rows) -> bool:
        """Whether nobody came or went on either side since the last update."""
        return self._seen is not None and self._seen[0] == generation and self._seen[1] is disks

    def update(
        self,
        generation: int,
        disks: Rows,
        names: Sequence[str],
        numbers: NDArray[np.uint32],
        values: NDArray[np.uint64],
    ) -> None:
        """Decide anew who the rows are; what `values` say of a row that changed its key is before its time."""
        keys = _keys(disks, names, numbers)
        known = self._keys + [None] * (len(keys) - len(self._keys))
        # A row that had no key yet has counted for nobody else: all of it is its own.
        pairs = enumerate(zip(known, keys, strict=True))
        fresh = [row for row, (old, new) in pairs if old is not None and new is not None and old != new]
        self._base |= {row: np.where(_COUNTERS, values[row], np.uint64(0)) for row in fresh}
        self._fresh = np.array(fresh, np.intp)
        self._keys = [new if new is not None else old for old, new in zip(known, keys, strict=True)]
        self._seen = generation, disks
        self._show(keys, names)

    def of(self, values: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Values of the rows in the table, counted from the beginning of their lives; changes the array given."""
        if self._base:
            values[list(self._base)] -= np.stack(list(self._base.values()))
        values[np.ix_(self._fresh, _PEAKS)] = MISSING
        self._fresh = np.zeros(0, np.intp)
        return values if len(self._shown) == len(values) else values[self._shown]

    def place(self, row: NDArray[np.uint32]) -> NDArray[np.intp]:
        """SysfsLocation in the table of each of the tracer's rows, -1 for those that are not in it."""
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
    """Key of each row in the disk table, None where that has no device of this name and number."""
    of_name = dict(zip(disks.names, disks.keys, strict=True))
    found = [of_name.get(storable_name(name)) for name in names]
    return [
        key if key is not None and number_of(key) == tuple(number) else None
        for key, number in zip(found, numbers.tolist(), strict=True)
    ]
