"""The slowest I/Os of an interval as a table: a few of every device, no more than a screen shows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from collectors.exact.tracer import SLOW_COLUMNS
from collectors.model import MISSING, Rows, Table
from collectors.tables.block.trace_schema import SLOW_IO

MOST = 32
MOST_OF_DEVICE = 8
COMMAND_BYTES = 16
"""TASK_COMM_LEN of include/linux/sched.h."""

_ROW = SLOW_COLUMNS.index("row")


def slow_table(values: NDArray[np.uint64], commands: Sequence[str], numbers: NDArray[np.uint32]) -> Table:
    """Choose the slowest of each device, as many devices as there is room for, and lay them out.

    Args:
        values: shape (n, len(SLOW_COLUMNS)), slowest first.
        commands: of each, as the kernel spells it.
        numbers: device numbers of the tracer's rows, shape (rows, 2).
    """
    chosen = _chosen(values)
    known = {name: values[chosen, place] for place, name in enumerate(SLOW_COLUMNS)}
    number = numbers[known["row"].astype(np.intp)].astype(np.uint64).reshape(-1, 2)
    names = [_command(commands[row]) for row in chosen.tolist()]
    known |= {"completed_ns": known["done_ns"], "pid": known["process"]}
    known |= {"major": number[:, 0], "minor": number[:, 1]}
    known["tag_wait_ns"] = np.where(known["tag_wait_ns"] == 0, MISSING, known["tag_wait_ns"])
    known |= {"command_low": _words(names, 0), "command_high": _words(names, 1)}
    columns = [known[column.id] for column in SLOW_IO.columns]
    return Table(SLOW_IO, _ranks(len(chosen)), np.stack(columns, axis=1).astype(np.uint64))


def _chosen(values: NDArray[np.uint64]) -> NDArray[np.intp]:
    """First the slowest of every device, then the second, until there are enough; in the order they came."""
    order = np.argsort(values[:, _ROW], kind="stable")
    row = values[order, _ROW]
    first = np.flatnonzero(np.append(True, row[1:] != row[:-1])) if len(row) else np.zeros(0, np.intp)
    rank = np.arange(len(row)) - np.repeat(first, np.diff(np.append(first, len(row))))
    few = order[rank < MOST_OF_DEVICE]
    wanted = np.lexsort((few, rank[rank < MOST_OF_DEVICE]))[:MOST]
    chosen: NDArray[np.intp] = np.sort(few[wanted])
    return chosen


def _command(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")[:COMMAND_BYTES].ljust(COMMAND_BYTES, b"\0")


def _words(names: Sequence[bytes], half: int) -> NDArray[np.uint64]:
    return np.frombuffer(b"".join(names), "<u8").reshape(-1, 2)[:, half].astype(np.uint64)


@lru_cache(maxsize=MOST + 1)
def _ranks(count: int) -> Rows:
    """One object per count, so that a session tells ranks once."""
    ranks = tuple(str(rank) for rank in range(1, count + 1))
    return Rows(ranks, ranks)
