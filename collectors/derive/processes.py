"""What processes read and wrote, over the time between their own readings."""

from __future__ import annotations

import numpy as np

from collectors.derive.growth import ratio
from collectors.model import MISSING, FrameTable, Table

_RATES = {
    "read_bytes_per_s": "read_bytes",
    "write_bytes_per_s": "write_bytes",
    "syscalls_read_per_s": "syscalls_read",
    "syscalls_write_per_s": "syscalls_write",
}


def process_table(current: Table) -> FrameTable:
    """All process fields; the raw columns hold growth over `span_us` already."""
    values = np.where(current.values == MISSING, np.nan, current.values.astype(np.float64))
    found = {column.id: values[:, position] for position, column in enumerate(current.schema.columns)}
    span_s = np.where(found["span_us"] > 0, found["span_us"] / 1e6, np.nan)
    rates = {field_id: ratio(found[column], span_s) for field_id, column in _RATES.items()}
    return FrameTable(current.rows, {"pid": found["pid"]} | rates)
