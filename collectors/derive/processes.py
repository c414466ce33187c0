"""What processes read and wrote, over the time between their own readings."""

from __future__ import annotations

import numpy as np

from collectors.derive.growth import aligned, growth, ratio
from collectors.model import FrameTable, Table

_RATES = {
    "read_bytes_per_s": "read_bytes",
    "write_bytes_per_s": "write_bytes",
    "syscalls_read_per_s": "syscalls_read",
    "syscalls_write_per_s": "syscalls_write",
}


def process_table(previous: Table | None, current: Table) -> FrameTable:
    """All process fields; rates are NaN where this tick brought no new reading of the process."""
    before = aligned(previous, current)
    grown = growth(current.schema.columns, before, current.values)
    span_s = np.where(grown["span_us"] > 0, grown["span_us"] / 1e6, np.nan)
    rates = {field_id: ratio(grown[column], span_s) for field_id, column in _RATES.items()}
    return FrameTable(current.rows, {"pid": grown["pid"]} | rates)
