"""What happened since one reader asked last, told as what differs from what it knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collectors.exact.tracer import SLOW_COLUMNS, Cells, Tracer
from collectors.model import Kind
from collectors.probe.message import Message
from collectors.schemas import TRACE

MOST_SLOW = 256
"""Slow I/Os held for a reader."""
MOST_CELLS = 1 << 20
"""Histogram cells held before equal ones are added up."""

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
        self._cells: list[NDArray[np.uint64]] = []

    def add(self, values: NDArray[np.uint64], cells: Cells, slow: NDArray[np.uint64], commands: Sequence[str]) -> None:
        """Take in an interval that ended, whoever ended it."""
        self._peaks = np.maximum(_padded(self._peaks, len(values)), values[:, _PEAKS])
        self._slow, self._commands = _slowest([*self._slow, *slow], [*self._commands, *commands])
        self._cells.append(np.stack([column.astype(np.uint64) for column in cells], axis=1))
        if sum(map(len, self._cells)) > MOST_CELLS:
            self._cells = [_added(np.concatenate(self._cells))]

    def take(self, tracer: Tracer, values: NDArray[np.uint64]) -> Message:
        """Hand everything over: rows that changed with their values, and what came in between."""
        mine = values.copy()
        mine[:, _PEAKS] = self._peaks
        row = np.flatnonzero((mine != _padded(self._known, len(mine))).any(axis=1))
        cells = np.concatenate([np.zeros((0, 4), np.uint64), *self._cells])
        arrays: dict[str, NDArray[Any]] = {"row": row.astype(np.uint32), "values": mine[row], "cells": cells}
        arrays["slow"] = self._slow
        head: dict[str, object] = {"rows": len(mine), "commands": self._commands, "generation": tracer.generation}
        if tracer.generation != self._generation:
            self._generation = tracer.generation
            head["names"] = tracer.names()
            arrays["numbers"] = tracer.numbers()
        self._known = mine
        self._peaks, self._slow, self._commands, self._cells = self._peaks[:0], self._slow[:0], [], []
        return Message(head, arrays)


def _padded(values: NDArray[np.uint64], rows: int) -> NDArray[np.uint64]:
    return np.pad(values, ((0, rows - len(values)), (0, 0)))


def _slowest(slow: Sequence[NDArray[np.uint64]], commands: list[str]) -> tuple[NDArray[np.uint64], list[str]]:
    order = sorted(range(len(slow)), key=lambda place: -int(slow[place][_LATENCY]))[:MOST_SLOW]
    chosen = np.array([slow[place] for place in order], np.uint64).reshape(-1, len(SLOW_COLUMNS))
    return chosen, [commands[place] for place in order]


def _added(cells: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Add up cells of one row, series and bucket."""
    places, cell_of = np.unique(cells[:, :3], axis=0, return_inverse=True)
    count = np.zeros(len(places), np.uint64)
    np.add.at(count, cell_of.reshape(-1), cells[:, 3])
    return np.column_stack([places, count])
