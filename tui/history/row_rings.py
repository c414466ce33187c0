"""Ring buffers of the figures of a table's rows: float32, bounded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from collectors.model import FrameTable, Rows
from collectors.series import Series

MOST_TICKS = 3600
FEWEST_TICKS = 32


class Ring:
    """The history of one table; when its rows change, that of the remaining ones is kept."""

    def __init__(self, fields: tuple[str, ...], budget_bytes: int) -> None:
        self._fields = fields
        self._budget_bytes = budget_bytes
        self._rows = Rows((), ())
        self._times = np.zeros(0, np.int64)
        self._values = np.zeros((0, len(fields), 0), np.float32)
        self._next = 0
        self._filled = 0
        self._has_dropped = False

    @property
    def rows(self) -> Rows:
        """The rows."""
        return self._rows

    @property
    def is_short(self) -> bool:
        """Whether it holds less than the history of charted rows."""
        return 0 < len(self._times) < MOST_TICKS

    @property
    def forgotten_ns(self) -> int:
        """Oldest time that is kept, if older ones were dropped; else 0."""
        return int(self._times[self._order()[0]]) if self._has_dropped and self._filled else 0

    def add(self, time_ns: int, table: FrameTable) -> None:
        """Add one frame."""
        if table.rows is not self._rows:
            self._adopt(table.rows)
        if not len(self._times):
            return
        slot = self._values[self._next]
        for position, field_id in enumerate(self._fields):
            column = table.columns.get(field_id)
            slot[position] = np.nan if column is None else column
        self._has_dropped |= self._filled == len(self._times)
        self._times[self._next] = time_ns
        self._next = (self._next + 1) % len(self._times)
        self._filled = min(self._filled + 1, len(self._times))

    def series(self, key: str, end_ns: int | None = None, span_ns: int | None = None) -> Series | None:
        """Copy the history of one row up to a time, at most `span_ns` of it; None if the row is unknown."""
        row = self._rows.positions.get(key)
        if row is None:
            return None
        order = self._order()
        times = self._times[order]
        if end_ns is not None:
            kept = times <= end_ns
            if span_ns is not None:
                kept &= times >= end_ns - span_ns
            order, times = order[kept], times[kept]
        past = self._values[order, :, row].astype(np.float64)
        return Series(times, {field_id: past[:, position] for position, field_id in enumerate(self._fields)})

    def recent(
        self, keys: Sequence[str], field_id: str, end_ns: int, span_ns: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Copy the last `span_ns` of one field up to a time: times, and values of shape (times, keys)."""
        order = self._order()
        times = self._times[order]
        kept = (times <= end_ns) & (times > end_ns - span_ns)
        order, times = order[kept], times[kept]
        values = np.full((len(times), len(keys)), np.nan, np.float32)
        rows = [(place, self._rows.positions[key]) for place, key in enumerate(keys) if key in self._rows.positions]
        if field_id in self._fields and rows and len(times):
            places, found = (list(side) for side in zip(*rows, strict=True))
            values[:, places] = self._values[order[:, None], self._fields.index(field_id), found]
        return times, values

    def _order(self) -> NDArray[np.intp]:
        return (np.arange(self._filled) + self._next - self._filled) % max(1, len(self._times))

    def _adopt(self, rows: Rows) -> None:
        order = self._order()
        times, values = self._times[order], self._values[order]
        ticks = self._ticks(len(rows))
        kept = min(len(times), ticks)
        self._has_dropped |= kept < len(times)
        self._times = np.zeros(ticks, np.int64)
        self._values = np.empty((ticks, len(self._fields), len(rows)), np.float32)
        self._values[:kept] = np.nan
        self._times[:kept] = times[len(times) - kept :]
        before = self._rows.positions
        staying = [(before[key], new) for new, key in enumerate(rows.keys) if key in before]
        if staying and kept:
            old, new = (list(side) for side in zip(*staying, strict=True))
            self._values[:kept, :, new] = values[len(times) - kept :, :, old]
        self._rows = rows
        self._filled, self._next = kept, kept % max(1, ticks)

    def _ticks(self, rows: int) -> int:
        row_bytes = len(self._fields) * np.dtype(np.float32).itemsize
        return int(np.clip(self._budget_bytes // max(1, rows * row_bytes), FEWEST_TICKS, MOST_TICKS)) if rows else 0
