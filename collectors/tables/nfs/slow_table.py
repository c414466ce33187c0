"""The raw table of the slowest NFS calls of an interval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from collectors.model import MISSING, Table
from collectors.sampling.nfs_program import SLOW_CALL_COLUMNS, NfsSlowCalls
from collectors.sampling.slow_rows import chosen, command_words, ranks
from collectors.tables.nfs.schema import NFS_SLOW

_US = 1000
_TIMES = ("queue", "rtt", "execute")


def slow_calls_table(calls: NfsSlowCalls, rows: Sequence[int | None], groups: Sequence[int]) -> Table:
    """Make the table of the slowest calls, at least one of each group while there is room.

    Args:
        calls: as the program lists them.
        rows: of each its row in NFS_LATENCY; None where it has none, and is left out.
        groups: of each the number of its mount and operation.
    """
    values, _, commands = calls
    placed = np.array([at for at, row in enumerate(rows) if row is not None], np.intp)
    kept = placed[chosen(np.array(groups, np.uint64)[placed])]
    known = {name: values[kept, at] for at, name in enumerate(SLOW_CALL_COLUMNS)}
    known |= {f"{part}_ns": known[f"{part}_us"] * _US for part in _TIMES}
    known |= {"completed_ns": known["done_ns"], "row": np.array([rows[at] for at in kept.tolist()], np.uint64)}
    words = command_words([commands[at] for at in kept.tolist()])
    is_named = known["process"] > 0
    known |= {"xid": _unless_zero(known["xid"]), "pid": _unless_zero(known["process"])}
    known |= {f"command_{half}": np.where(is_named, words[:, at], MISSING) for at, half in enumerate(("low", "high"))}
    columns = [known[column.id] for column in NFS_SLOW.columns]
    return Table(NFS_SLOW, ranks(len(kept)), np.stack(columns, axis=1).astype(np.uint64))


def _unless_zero(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return np.where(values == 0, MISSING, values)
