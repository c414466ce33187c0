"""Totals over all disks, counting every I/O once."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from collectors.model import FrameTable, Rows, Topology

ALL_DISKS = "all_disks"
_ROWS = Rows((ALL_DISKS,), ("all disks",))
_SUMS = ("iops", "bytes_per_s", "in_flight")
_PER_IO = ("await_ms", "queue_ms", "service_ms")
_LARGEST = ("busy_pct", "max_ms")
_STACKED_KINDS = {"loop", "dm", "md"}


def total_disks(disks: FrameTable, topology: Topology) -> FrameTable:
    """Totals in one row over the disks not built on others: the I/Os of devices built on them are already included.

    Latencies are weighted by I/Os; busy and peak are the maximum, because neither is additive.
    """
    base = _base_mask(disks.rows, topology)
    columns: dict[str, NDArray[np.float64]] = {}
    iops = _base_column(disks, "iops", base)
    for field_id in _SUMS:
        columns[field_id] = _row(_sum(_base_column(disks, field_id, base)))
    for field_id in _PER_IO:
        columns[field_id] = _row(_weighted_mean(_base_column(disks, field_id, base), iops))
    for field_id in _LARGEST:
        columns[field_id] = _row(_largest(_base_column(disks, field_id, base)))
    return FrameTable(_ROWS, columns)


@functools.lru_cache(maxsize=4)
def _base_mask(rows: Rows, topology: Topology) -> NDArray[np.bool_]:
    return np.array([is_base(key, topology) for key in rows.keys], bool)


def is_base(key: str, topology: Topology) -> bool:
    """Whether a device is not built on another one."""
    device = topology.devices.get(key)
    return device is None or not (device.slaves or device.kind in _STACKED_KINDS)


def _base_column(disks: FrameTable, field_id: str, base: NDArray[np.bool_]) -> NDArray[np.float64]:
    column = disks.columns.get(field_id)
    return np.full(int(base.sum()), np.nan) if column is None else column[base]


def _sum(values: NDArray[np.float64]) -> float:
    return float(np.nansum(values)) if np.isfinite(values).any() else float("nan")


def _weighted_mean(values: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    known = np.isfinite(values) & np.isfinite(weights) & (weights > 0)
    return float(np.average(values[known], weights=weights[known])) if known.any() else float("nan")


def _largest(values: NDArray[np.float64]) -> float:
    known = values[np.isfinite(values)]
    return float(known.max()) if known.size else float("nan")


def _row(value: float) -> NDArray[np.float64]:
    return np.array([value])
