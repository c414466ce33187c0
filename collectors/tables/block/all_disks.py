"""Totals over all disks, as one row."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from collectors.derive.counter_deltas import Values
from collectors.derive.roles import is_base
from collectors.field import Combine
from collectors.model import FrameTable, Rows, Topology
from collectors.tables.block.fields import DISK_FIELDS

ALL_DISKS = "all_disks"
TOTALS = ("iops", "bytes_per_s", "await_ms", "queue_ms", "service_ms", "in_flight", "busy_pct", "max_ms")
"""Ids of the fields that have a total."""
_ROWS = Rows((ALL_DISKS,), ("all disks",))
_COMBINED = {field.id: (field.combined, field.per) for field in DISK_FIELDS if field.id in TOTALS}


def total_disks(disks: FrameTable, topology: Topology) -> FrameTable:
    """Totals in one row over the disks not built on others: the I/Os of devices built on them are already included.

    Fields are merged as they say, and busy time, which cannot be merged, is that of the busiest disk.
    """
    base = _base_mask(disks.rows, topology)

    def column(field_id: str) -> Values:
        values = disks.columns.get(field_id)
        return np.full(int(base.sum()), np.nan) if values is None else values[base]

    totals = {}
    for field_id, (combine, per) in _COMBINED.items():
        values = column(field_id)
        weights = column(per) if combine is Combine.MEAN else np.ones(len(values))
        totals[field_id] = np.array([_total(combine, values, weights)])
    return FrameTable(_ROWS, totals)


@functools.lru_cache(maxsize=4)
def _base_mask(rows: Rows, topology: Topology) -> NDArray[np.bool_]:
    return np.array([is_base(key, topology) for key in rows.keys], bool)


def _total(combine: Combine, values: Values, weights: Values) -> float:
    known = np.isfinite(values) & np.isfinite(weights) & (weights > 0)
    if not known.any():
        return float("nan")
    match combine:
        case Combine.SUM:
            return float(values[known].sum())
        case Combine.MEAN:
            return float(np.average(values[known], weights=weights[known]))
    return float(values[known].max())
