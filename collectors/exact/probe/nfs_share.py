"""Times of NFS calls for the readers of a probe helper: one program, each reader with what it has not taken yet."""

from __future__ import annotations

import numpy as np
from msgspec import Struct, field

from collectors.exact.probe.message import Message
from collectors.exact.probe.share import ProgramShare
from collectors.sampling.nfs_program import (
    CALL_CELL_COLUMNS,
    CALL_COLUMNS,
    SLOW_CALL_COLUMNS,
    NfsCalls,
    NfsProgram,
    NfsSlowCalls,
    no_slow_calls,
)

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
