"""Age of the states of paths, stored in each sample."""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np

from collectors.model import MISSING, Rows, Table
from collectors.tables.block.schema import PATH_STATE

_ROWS = Rows(("states",), ("states",))


def state_age_tables(read_ns: int | None) -> dict[str, Table]:
    """Make the current PATH_STATE table; none if states are not read.

    Args:
        read_ns: CLOCK_MONOTONIC when the last read of all states began.
    """
    if read_ns is None:
        return {}
    age_ms = max(0, time.monotonic_ns() - read_ns) // 1_000_000
    return {PATH_STATE.name: Table(PATH_STATE, _ROWS, np.array([[age_ms]], np.uint64))}


def state_age_s(tables: Mapping[str, Table]) -> float:
    """Age of the states in a sample in seconds; NaN if unknown."""
    table = tables.get(PATH_STATE.name)
    if table is None or not len(table.rows) or (age_ms := table.column("age_ms")[0]) == MISSING:
        return float("nan")
    return float(age_ms) / 1e3
