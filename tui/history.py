"""The recent past of every row, for charts: ring buffers of float32 with a bounded size."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collectors.model import Frame, FrameTable, Rows
from tui.latency_past import LatencyPast
from tui.totals import ALL_DISKS, total_disks

KEPT: Mapping[str, tuple[str, ...]] = {
    "disks": ("iops", "bytes_per_s", "await_ms", "queue_ms", "service_ms", "in_flight", "busy_pct", "max_ms"),
    ALL_DISKS: ("iops", "bytes_per_s", "await_ms", "queue_ms", "service_ms", "in_flight", "busy_pct", "max_ms"),
    "paths": ("iops", "bytes_per_s", "await_ms", "queue_ms", "service_ms", "in_flight", "max_ms"),
    "hbas": ("iops", "bytes_per_s", "await_ms", "queue_ms", "service_ms", "in_flight", "max_ms"),
    "load": ("iops", "await_ms", "p99_ms", "max_ms"),
    "load_total": (
        "iops",
        "bytes_per_s",
        "await_ms",
        "p99_ms",
        "max_ms",
        "in_flight",
        "errors_per_s",
        "service_ms",
        "skipped_per_s",
    ),
}
"""Fields kept per frame table."""

BUDGET_BYTES = 32 << 20
MOST_TICKS = 3600
FEWEST_TICKS = 32


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """One row's past: wall times of shape (n,), int64, and per field float64 of shape (n,), NaN for gaps."""

    times_ns: NDArray[np.int64]
    values: Mapping[str, NDArray[np.float64]]

    def __len__(self) -> int:
        return len(self.times_ns)


class _Ring:
    """The past of one table; a change of its rows keeps the past of those that stay."""

    def __init__(self, fields: tuple[str, ...], budget_bytes: int) -> None:
        self._fields = fields
        self._budget_bytes = budget_bytes
        self._rows = Rows((), ())
        self._index: dict[str, int] = {}
        self._times = np.zeros(0, np.int64)
        self._values = np.zeros((0, len(fields), 0), np.float32)
        self._next = 0
        self._filled = 0

    def add(self, time_ns: int, table: FrameTable) -> None:
        if table.rows is not self._rows:
            self._adopt(table.rows)
        if not len(self._times):
            return
        slot = self._values[self._next]
        for position, field_id in enumerate(self._fields):
            column = table.columns.get(field_id)
            slot[position] = np.nan if column is None else column
        self._times[self._next] = time_ns
        self._next = (self._next + 1) % len(self._times)
        self._filled = min(self._filled + 1, len(self._times))

    def series(self, key: str, end_ns: int | None, span_ns: int | None) -> Series | None:
        row = self._index.get(key)
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

    def _order(self) -> NDArray[np.intp]:
        return (np.arange(self._filled) + self._next - self._filled) % max(1, len(self._times))

    def _adopt(self, rows: Rows) -> None:
        order = self._order()
        times, values = self._times[order], self._values[order]
        ticks = self._ticks(len(rows))
        kept = min(len(times), ticks)
        self._times = np.zeros(ticks, np.int64)
        self._values = np.empty((ticks, len(self._fields), len(rows)), np.float32)
        self._values[:kept] = np.nan
        self._times[:kept] = times[len(times) - kept :]
        staying = [(self._index[key], new) for new, key in enumerate(rows.keys) if key in self._index]
        if staying and kept:
            old, new = (list(side) for side in zip(*staying, strict=True))
            self._values[:kept, :, new] = values[len(times) - kept :, :, old]
        self._rows, self._index = rows, {key: position for position, key in enumerate(rows.keys)}
        self._filled, self._next = kept, kept % max(1, ticks)

    def _ticks(self, rows: int) -> int:
        row_bytes = len(self._fields) * np.dtype(np.float32).itemsize
        return int(np.clip(self._budget_bytes // max(1, rows * row_bytes), FEWEST_TICKS, MOST_TICKS)) if rows else 0


class History:
    """The past of disks and load; filled by the feed's thread for every frame, painted or not."""

    def __init__(self, budget_bytes: int = BUDGET_BYTES) -> None:
        self._lock = threading.Lock()
        self._budget_bytes = budget_bytes
        self._rings = self._empty()
        self.latencies = LatencyPast()
        """Histograms, peaks and slow I/Os of the same past; it has a lock of its own."""

    def _empty(self) -> dict[str, _Ring]:
        return {table: _Ring(fields, self._budget_bytes) for table, fields in KEPT.items()}

    def add(self, frame: Frame) -> None:
        """Take one frame in."""
        tables = _tables(frame)
        with self._lock:
            _put(self._rings, frame.time_ns, tables)

    def replace(self, frames: Iterable[Frame]) -> None:
        """Exchange the past for another one, oldest first: what a seek does."""
        rings = self._empty()
        for frame in frames:
            _put(rings, frame.time_ns, _tables(frame))
        with self._lock:
            self._rings = rings

    def series(self, table: str, key: str, end_ns: int | None = None, span_ns: int | None = None) -> Series | None:
        """Copy the past of one row up to a moment, no further back than the span; None if the row is not known."""
        with self._lock:
            return self._rings[table].series(key, end_ns, span_ns)


def _tables(frame: Frame) -> dict[str, FrameTable]:
    tables = dict(frame.tables)
    if "disks" in tables:
        tables[ALL_DISKS] = total_disks(tables["disks"], frame.topology)
    return tables


def _put(rings: Mapping[str, _Ring], time_ns: int, tables: Mapping[str, FrameTable]) -> None:
    for name, ring in rings.items():
        if name in tables:
            ring.add(time_ns, tables[name])
