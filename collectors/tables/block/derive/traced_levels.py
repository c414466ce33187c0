"""Traced devices added up to disks, paths, HBA ports, target ports and the whole host."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.derive.counter_deltas import Values, positions
from collectors.derive.percentiles import RowCells
from collectors.derive.roles import HOST_ROWS, Positions, host_of_row, roles
from collectors.model import Rows, Topology
from collectors.tables.block.derive.traced import LARGEST, SUMMED, Traced
from collectors.tables.block.schema import TRACE_SERIES, group_key


class TracedLevel(Struct, frozen=True, eq=False):
    """Mapping of traced devices to the rows of a frame table."""

    rows: Rows
    row_of_device: Positions
    """Row of each traced device, -1 if it is in none."""
    group_at: Positions
    """Row in TRACE_GROUP of each row of this level, -1 if the tracer has no such group."""
    devices: Positions
    """Number of traced devices of each row."""
    disk_at: Positions | None = None
    """Row in the disk table of each row of this level; None if the rows are no devices."""


class LevelSums(Struct, frozen=True, eq=False):
    """Sums of some rows of a level; arrays of shape (len(at),), NaN where a value of one of the devices is unknown.

    The maximum of I/Os in the driver is known for single devices only.
    """

    at: Positions
    """Rows of the level with an active device."""
    sums: Mapping[str, Values]
    largest: Mapping[str, Values]
    busy_ns: Values
    """Time with any device of the row busy; NaN if there are several devices and no group for them."""
    busiest_ns: Values
    """The longest such time of one of its devices."""
    are_several: NDArray[np.bool_]
    """Whether the row has several devices."""
    cells: Mapping[str, RowCells]
    """Histograms of "queue" and "service" time, rows in the order of `at`; empty if there are none."""


@lru_cache(maxsize=8)
def levels(traced_rows: Rows, group_rows: Rows, disk_rows: Rows, topology: Topology) -> Mapping[str, TracedLevel]:
    """Levels by frame table; thousands of lookups, so cached.

    An NVMe head is the sum of its paths; a dm-multipath device is traced directly.
    """
    part = roles(disk_rows, topology.graph)
    device_at = positions(disk_rows, traced_rows.keys)
    own = _turned(part.disk_at, len(disk_rows))
    heads = np.isin(part.lun_of_row, part.nvme_heads) & (part.lun_of_row >= 0)
    of_disk = np.where(heads, own[part.lun_of_row], own[:-1])
    of_path = _turned(part.path_at, len(disk_rows))[:-1]

    def level(kind: str, rows: Rows, position_of_row: Positions, disk_at: Positions | None = None) -> TracedLevel:
        # A path is one device with an exact busy time; of the other kinds few rows have several devices.
        group_keys = [group_key(kind, key) for key in rows.keys] if kind and len(group_rows) else []
        group_at = positions(group_rows, group_keys) if group_keys else np.full(len(rows), -1, np.intp)
        position = np.append(position_of_row, -1)[device_at]
        devices = np.bincount(position[position >= 0], minlength=len(rows))
        return TracedLevel(rows, position, group_at, devices, disk_at)

    return {
        "disks": level("lun", part.disks, of_disk, part.disk_at),
        "paths": level("", part.paths, of_path, part.path_at),
        "hbas": level("hba", part.ports, part.port_of_row),
        "target_ports": level("target", part.targets, part.target_of_row),
        "whole_host": level("", HOST_ROWS, host_of_row(disk_rows, topology)),
    }


def level_sums(traced: Traced, level: TracedLevel) -> LevelSums:
    """Add up the devices of each row."""
    position = level.row_of_device[traced.at]
    ours = np.flatnonzero(position >= 0)
    at, group = np.unique(position[ours], return_inverse=True)
    if len(at) == len(ours):
        sums, largest = _each(traced, ours, group)
    else:
        sums, largest = _together(traced, ours, group, len(at))
    several = level.devices[at] > 1
    busy_ns = busiest_ns = sums["busy_ns"]
    if several.any():
        busiest_ns = _largest(group, traced.values["busy_ns"][ours], len(at))
        together = np.append(traced.group_busy_ns, np.nan)[level.group_at[at]]
        busy_ns = np.where(several, together, busy_ns)
        largest["in_driver_peak"] = np.where(several, np.nan, largest["in_driver_peak"])
    return LevelSums(at, sums, largest, busy_ns, busiest_ns, several, _cells_of(traced, level, at))


_Sums = dict[str, Values]


def _each(traced: Traced, ours: Positions, group: Positions) -> tuple[_Sums, _Sums]:
    """Return the sums of rows of one device each."""
    order = np.empty(len(ours), np.intp)
    order[group] = ours
    return {name: traced.values[name][order] for name in SUMMED}, {name: traced.values[name][order] for name in LARGEST}


def _together(traced: Traced, ours: Positions, group: Positions, count: int) -> tuple[_Sums, _Sums]:
    sums = {name: np.bincount(group, traced.values[name][ours], minlength=count).astype(np.float64) for name in SUMMED}
    return sums, {name: _largest(group, traced.values[name][ours], count) for name in LARGEST}


def _turned(at: Positions, count: int) -> Positions:
    """Index in `at` of each of `count` rows, -1 for rows that are not in it, with one more -1 at the end."""
    positions = np.full(count + 1, -1, np.intp)
    positions[at] = np.arange(len(at))
    return positions


def _largest(group: NDArray[np.intp], values: Values, count: int) -> Values:
    largest = np.zeros(count)
    with np.errstate(invalid="ignore"):
        np.maximum.at(largest, group, values)
    return largest


def _cells_of(traced: Traced, level: TracedLevel, at: Positions) -> dict[str, RowCells]:
    cells = traced.cells
    if cells is None:
        return {}
    compact = np.full(len(level.rows) + 1, -1, np.int64)
    compact[at] = np.arange(len(at))
    row = compact[level.row_of_device[cells.row]]
    found = {}
    for part in ("queue", "service"):
        of_part = np.array([name.startswith(part) for name in TRACE_SERIES])
        kept = np.flatnonzero((row >= 0) & of_part[cells.series])
        found[part] = RowCells(cells.scale, row[kept].astype(np.uint32), cells.bucket[kept], cells.count[kept])
    return found
