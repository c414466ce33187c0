"""Programs beside those on block I/O, run once for all readers of the probe helper."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Generic, Protocol, TypeVar

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from collectors.exact.probe.message import Message
from collectors.sampling.programs import (
    CALL_CELL_COLUMNS,
    CALL_COLUMNS,
    CELL_COLUMNS,
    SLOW_CALL_COLUMNS,
    NfsCalls,
    NfsProgram,
    NfsSlowCalls,
    ThrottleProgram,
    no_slow_calls,
)


class _Closable(Protocol):
    def close(self) -> None: ...


Program = TypeVar("Program", bound=_Closable)
Untaken = TypeVar("Untaken")


class ProgramShare(ABC, Generic[Program, Untaken]):
    """Attaches for the first reader and detaches after the last one; keeps what each has not taken yet."""

    WHAT: ClassVar[str]
    """What the program times."""

    def __init__(self, open_program: Callable[[], Program] | None) -> None:
        """Nothing is attached yet; `open_program` raises OSError where it cannot, None never attaches."""
        self._open = open_program
        self._program: Program | None = None
        self._untaken: dict[object, Untaken] = {}

    @abstractmethod
    def answer(self, reader: object) -> Message:
        """Return a reading with what this reader has not taken.

        Raises:
            OSError: the kernel refuses.
            ValueError: nothing may be attached.
        """

    @abstractmethod
    def kept_cells(self, reader: object) -> int:
        """Count the histogram cells that a reader has not taken."""

    def leave(self, reader: object) -> None:
        """Remove a reader, whether it has read anything or not."""
        if self._untaken.pop(reader, None) is not None and not self._untaken:
            self.close()

    def close(self) -> None:
        """Detach; may be called twice."""
        program, self._program = self._program, None
        self._untaken = {}
        if program is not None:
            program.close()

    def _attached(self) -> Program:
        if self._program is None:
            if self._open is None:
                raise ValueError(f"this probe helper times no {self.WHAT}")
            self._program = self._open()
        return self._program


MOST_CELLS = 1 << 16
"""Histogram cells of one reader before equal ones are merged."""


class ThrottleShare(ProgramShare[ThrottleProgram, list[NDArray[np.uint64]]]):
    """The programs on the block throttle."""

    WHAT = "waits for limits"

    def answer(self, reader: object) -> Message:
        """Return all waits since attaching, and what histograms have grown since this reader's last request."""
        program = self._attached()
        self._untaken.setdefault(reader, [])
        rows, cells = program.read()
        for kept in self._untaken.values():
            _keep(kept, cells)
        mine, self._untaken[reader] = self._untaken[reader], []
        head = {"error": "", "losses": list(program.losses())}
        return Message(head, {"waits": rows, "cells": np.concatenate([_no_cells(), *mine])})

    def kept_cells(self, reader: object) -> int:
        """Count the histogram cells that a reader has not taken."""
        return sum(map(len, self._untaken.get(reader, ())))


def _no_cells() -> NDArray[np.uint64]:
    return np.zeros((0, CELL_COLUMNS), np.uint64)


def _keep(kept: list[NDArray[np.uint64]], cells: NDArray[np.uint64]) -> None:
    """Add cells to those of a reader; equal ones are merged once they are many."""
    if not len(cells):
        return
    kept.append(cells)
    if len(kept) > 1 and sum(map(len, kept)) > MOST_CELLS:
        kept[:] = [_merged(np.concatenate(kept))]


def _merged(cells: NDArray[np.uint64]) -> NDArray[np.uint64]:
    places, cell_of = np.unique(cells[:, :2], axis=0, return_inverse=True)
    count = np.zeros(len(places), np.uint64)
    np.add.at(count, cell_of.reshape(-1), cells[:, 2])
    return np.column_stack([places, count])


MOST_SLOW_CALLS = 256
"""Slow calls kept for a reader."""
_EXECUTE = SLOW_CALL_COLUMNS.index("execute_us")
_SUMS, _PEAKS = slice(3, 7), slice(7, CALL_COLUMNS)
_Whose = tuple[int, int, int, str]


class _Untaken(Struct):
    """Calls since the last request of a reader; as many as there are clients, transports, operations and buckets."""

    rows: dict[_Whose, list[int]] = field(default_factory=dict)
    cells: dict[tuple[_Whose, int, int], int] = field(default_factory=dict)
    slow: NfsSlowCalls = field(default_factory=no_slow_calls)

    def add(self, calls: NfsCalls, slow: NfsSlowCalls) -> None:
        """Add one reading."""
        self.slow = _slowest(self.slow, slow)
        rows, operations, cells = calls
        whose: list[_Whose] = [
            (client, transport, version, operation)
            for (client, transport, version), operation in zip(rows[:, :3].tolist(), operations, strict=True)
        ]
        for who, row in zip(whose, rows.tolist(), strict=True):
            known = self.rows.setdefault(who, [*row[:3], *[0] * (CALL_COLUMNS - 3)])
            known[_SUMS] = [before + more for before, more in zip(known[_SUMS], row[_SUMS], strict=True)]
            known[_PEAKS] = [max(before, now) for before, now in zip(known[_PEAKS], row[_PEAKS], strict=True)]
        for row, series, bucket, count in cells.tolist():
            cell = whose[row], series, bucket
            self.cells[cell] = self.cells.get(cell, 0) + count

    @property
    def calls(self) -> NfsCalls:
        """All of them, as one reading."""
        position = {who: at for at, who in enumerate(self.rows)}
        cells = [[position[who], series, bucket, count] for (who, series, bucket), count in self.cells.items()]
        return (
            np.array(list(self.rows.values()), np.uint64).reshape(-1, CALL_COLUMNS),
            [who[3] for who in self.rows],
            np.array(cells, np.uint64).reshape(-1, CALL_CELL_COLUMNS),
        )


def _slowest(before: NfsSlowCalls, more: NfsSlowCalls) -> NfsSlowCalls:
    values, operations, commands = np.concatenate([before[0], more[0]]), before[1] + more[1], before[2] + more[2]
    order = np.argsort(values[:, _EXECUTE], kind="stable")[::-1][:MOST_SLOW_CALLS]
    return values[order], [operations[at] for at in order.tolist()], [commands[at] for at in order.tolist()]


class NfsShare(ProgramShare[NfsProgram, _Untaken]):
    """The program on NFS calls."""

    WHAT = "NFS calls"

    def answer(self, reader: object) -> Message:
        """Return the calls that ended since this reader's last request."""
        program = self._attached()
        self._untaken.setdefault(reader, _Untaken())
        calls, slowest = program.read(), program.slowest()
        for kept in self._untaken.values():
            kept.add(calls, slowest)
        taken, self._untaken[reader] = self._untaken[reader], _Untaken()
        (rows, operations, cells), (slow, slow_operations, commands) = taken.calls, taken.slow
        head = {"error": "", "losses": list(program.losses()), "operations": operations}
        head |= {"slow_operations": slow_operations, "commands": commands}
        return Message(head, {"calls": rows, "cells": cells, "slow": slow})

    def kept_cells(self, reader: object) -> int:
        """Count the histogram cells that a reader has not taken."""
        kept = self._untaken.get(reader)
        return 0 if kept is None else len(kept.cells)
