"""What the devices below a map, an array or a cache do for each of its I/Os."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from collectors.derive.counter_deltas import Values, ratio
from collectors.model import FrameTable, Rows, Topology

_RATIOS = {"ios_below_ratio": "iops", "bytes_below_ratio": "bytes_per_s"}


def layer_figures(disks: FrameTable, topology: Topology) -> dict[str, Values]:
    """Compare disks with those that they are built on; NaN for a disk without any, or whose members others use, too."""
    upper, member = _members(disks.rows, topology)
    figures = {}
    for field_id, quantity in _RATIOS.items():
        own, found = disks.columns[quantity], np.full(len(disks.rows), np.nan)
        if len(upper):
            below = np.bincount(upper, own[member], minlength=len(disks.rows)).astype(np.float64)
            found[upper] = ratio(below[upper], own[upper])
        figures[field_id] = found
    return figures


@lru_cache(maxsize=4)
def _members(rows: Rows, topology: Topology) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows of disks and of what each is built on, one pair per member."""
    at = {device.name: rows.positions[key] for key, device in topology.devices.items() if key in rows.positions}
    pairs: list[tuple[int, int]] = []
    for device in topology.devices.values():
        if device.slaves and device.name in at and _has_for_itself(device.name, device.slaves, at, topology, rows):
            pairs += ((at[device.name], at[name]) for name in device.slaves)
    upper, member = np.array(pairs, np.intp).reshape(-1, 2).T
    return upper, member


def _has_for_itself(name: str, slaves: tuple[str, ...], at: dict[str, int], topology: Topology, rows: Rows) -> bool:
    if any(slave not in at for slave in slaves):
        return False
    return all(topology.devices[rows.keys[at[slave]]].holders == (name,) for slave in slaves)
