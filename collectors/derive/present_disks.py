"""The disks to show: those with a size."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from collectors.model import FrameTable, Rows, Topology


@functools.lru_cache(maxsize=1)
def present_disks(disks: FrameTable, topology: Topology) -> FrameTable:
    """Leave out devices of size 0, such as detached loop devices; the last result is cached for its frame.

    Those that never did any I/O are not in the table: its reader leaves them out.
    """
    chosen = _chosen(disks.rows, topology)
    if chosen is None:
        return disks
    rows, kept = chosen
    columns = {field_id: column[kept] for field_id, column in disks.columns.items()}
    return FrameTable(rows, columns, {field_id: tiers[kept] for field_id, tiers in disks.tiers.items()})


@functools.lru_cache(maxsize=4)
def _chosen(rows: Rows, topology: Topology) -> tuple[Rows, NDArray[np.intp]] | None:
    """Rows to keep and their positions; None if all are kept. The same object until something changes."""
    kept = [position for position, key in enumerate(rows.keys) if _has_size(key, topology)]
    if len(kept) == len(rows):
        return None
    names = tuple(rows.names[position] for position in kept)
    return Rows(tuple(rows.keys[position] for position in kept), names), np.array(kept, np.intp)


def _has_size(key: str, topology: Topology) -> bool:
    device = topology.devices.get(key)
    return device is None or device.size_bytes != 0
