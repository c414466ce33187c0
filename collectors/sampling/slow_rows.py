"""Rows of the raw tables of slowest I/Os and calls: which are kept, their ranks, and names of commands as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from collectors.model import Rows
from engine.text import safe_text

MOST = 32
MOST_OF_GROUP = 8
COMMAND_BYTES = 16
"""TASK_COMM_LEN of include/linux/sched.h."""


def chosen(group: NDArray[np.uint64]) -> NDArray[np.intp]:
    """Take the slowest of every group, then the second slowest, up to the limit; in the given order.

    Args:
        group: of each, the slowest first.
    """
    order = np.argsort(group, kind="stable")
    row = group[order]
    first = np.flatnonzero(np.append(True, row[1:] != row[:-1])) if len(row) else np.zeros(0, np.intp)
    rank = np.arange(len(row)) - np.repeat(first, np.diff(np.append(first, len(row))))
    few = order[rank < MOST_OF_GROUP]
    wanted = np.lexsort((few, rank[rank < MOST_OF_GROUP]))[:MOST]
    found: NDArray[np.intp] = np.sort(few[wanted])
    return found


def command_words(names: Sequence[str]) -> NDArray[np.uint64]:
    """Write the names as two little-endian numbers each, shape (names, 2)."""
    padded = (name.encode("utf-8", "surrogateescape")[:COMMAND_BYTES].ljust(COMMAND_BYTES, b"\0") for name in names)
    return np.frombuffer(b"".join(padded), "<u8").reshape(-1, 2).astype(np.uint64)


def command_text(low: int | None, high: int | None) -> str:
    """Decode the two numbers that hold the 16 bytes of the kernel's comm; empty where they are not known."""
    if low is None or high is None:
        return ""
    name = (low.to_bytes(8, "little") + high.to_bytes(8, "little")).partition(b"\0")[0]
    return safe_text(name.decode("utf-8", "backslashreplace"))


@lru_cache(maxsize=MOST + 1)
def ranks(count: int) -> Rows:
    """Return one object per count, so that a session stores ranks once."""
    names = tuple(str(rank) for rank in range(1, count + 1))
    return Rows(names, names)
