"""What happened since one reader asked last, as what differs from what it knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collectors.exact.tracer import SLOW_COLUMNS, Tracer
from collectors.model import Kind
from collectors.probe.message import Message
from collectors.tables.block.trace_schema import TRACE

MOST_SLOW = 256
"""Slow I/Os held for a reader."""
MOST_CELLS = 1 << 20
"""Histogram cells of one reader before equal ones are added up; until then readers share them."""

_PEAKS = np.flatnonzero([column.kind is Kind.PEAK for column in TRACE.columns])
_LATENCY = SLOW_COLUMNS.index("latency_ns")


class Backlog:
    """Peaks, histogram cells and slow I/Os of all intervals that ended since the reader's last one."""

    def __init__(self) -> None:
        self._generation: int | None = None
        self._known = np.zeros((0, len(TRACE.columns)), np.uint64)
        self._peaks = np.zeros((0, len(_PEAKS)), np.uint64)
        self._slow = np.zeros((0, len(SLOW_COLUMNS)), np.uint64)
        self._commands: list[str] = []
        self._kept = np.zeros((0, 4), np.uint64)
        self._cells: list[NDArray[np.uint64]] = []
        self._shared_cells = 0

    @property
    def kept_cells(self) -> int:
        """Histogram cells kept for this reader alone."""
        return len(self._kept)

    def add(
        self,
        values: NDArray[np.uint64],
        cells: NDArray[np.uint64],
        slow: NDArray[np.uint64],
        commands: Sequence[str],
    ) -> None:
        """Take in an interval that ended, whoever ended it.

        Args:
            values: shape (n, columns of TRACE).
            cells: shape (n, 4): row, series, bucket, count; not copied.
            slow: shape (n, len(SLOW_COLUMNS)).
            commands: of the slow I/Os.
        """
        self._peaks = np.maximum(_padded(self._peaks, len(values)), values[:, _PEAKS])
        if len(slow):
            self._slow, self._commands = _slowest(np.concatenate([self._slow, slow]), [*self._commands, *commands])
        if len(cells):
            self._cells.append(cells)
            self._shared_cells += len(cells)
        if self._shared_cells > MOST_CELLS:
            self._kept = _added(np.concatenate([self._kept, *self._cells]))
            self._cells, self._shared_cells = [], 0

    def take(self, tracer: Tracer, values: NDArray[np.uint64]) -> Message:
        """Hand everything over: rows that changed with their values, and what came in between."""
        mine = values.copy()
        mine[:, _PEAKS] = self._peaks
        row = np.flatnonzero((mine != _padded(self._known, len(mine))).any(axis=1))
        cells = np.concatenate([self._kept, *self._cells])
        arrays: dict[str, NDArray[Any]] = {"row": row.astype(np.uint32), "values": mine[row], "cells": cells}
        arrays["slow"] = self._slow
        head: dict[str, object] = {"rows": len(mine), "commands": self._commands, "generation": tracer.generation}
        if tracer.generation != self._generation:
            self._generation = tracer.generation
            head["names"] = tracer.names()
            arrays["numbers"] = tracer.numbers()
        self._known = mine
        self._forget()
        return Message(head, arrays)

    def _forget(self) -> None:
        self._peaks, self._slow, self._commands = self._peaks[:0].copy(), self._slow[:0].copy(), []
        self._kept, self._cells, self._shared_cells = self._kept[:0].copy(), [], 0


def _padded(values: NDArray[np.uint64], rows: int) -> NDArray[np.uint64]:
    return values if len(values) == rows else np.pad(values, ((0, rows - len(values)), (0, 0)))


def _slowest(slow: NDArray[np.uint64], commands: list[str]) -> tuple[NDArray[np.uint64], list[str]]:
    order = np.argsort(slow[:, _LATENCY], kind="stable")[::-1][:MOST_SLOW]
    return slow[order], [commands[place] for place in order.tolist()]


def _added(cells: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Add up cells of one row, series and bucket."""
    # One number for the three (32, 8 and 16 bits): sorting those takes a tenth of sorting rows.
    place = cells[:, 0] << np.uint64(24) | cells[:, 1] << np.uint64(16) | cells[:, 2]
    _, first, cell_of = np.unique(place, return_index=True, return_inverse=True)
    count = np.zeros(len(first), np.uint64)
    np.add.at(count, cell_of, cells[:, 3])
    return np.column_stack([cells[first, :3], count])
