"""Which disk, path, HBA port or target port each traced device belongs to, and what these did together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from collectors.derive.counter_deltas import Values, positions
from collectors.derive.percentiles import RowCells
from collectors.derive.roles import Places, roles
from collectors.graph import Graph
from collectors.model import Rows
from collectors.tables.block.derive.traced import LARGEST, SUMMED, Traced
from collectors.tables.block.trace_schema import TRACE_SERIES, group_key


@dataclass(frozen=True, slots=True, eq=False)
class TracedLevel:
    """How traced devices make up the rows of a frame table."""

    rows: Rows
    place_of_device: Places
    """Row of each traced device, -1 for those that are in none."""
    group_at: Places
    """Row in TRACE_GROUP of each row of this level, -1 where the kernel side has no such group."""
    devices: Places
    """How many traced devices make up each row."""
    disk_at: Places | None = None
    """Row in the disk table of each row of this level; None where the rows are no devices."""


@dataclass(frozen=True, slots=True, eq=False)
class LevelSums:
    """What some rows of a level did; arrays of shape (len(at),), NaN where one of the devices is not known.

    The most I/Os in the driver at once are known of single devices only.
    """

    at: Places
    """Rows of the level in which any device did anything."""
    sums: Mapping[str, Values]
    largest: Mapping[str, Values]
    busy_ns: Values
    """Time with any device of the row busy; NaN where several devices are and no group tells of them together."""
    cells: Mapping[str, RowCells]
    """Histograms by part of the time, "queue" and "service", rows in the order of `at`; empty if none were taken."""


@lru_cache(maxsize=8)
def levels(traced_rows: Rows, group_rows: Rows, disk_rows: Rows, graph: Graph) -> Mapping[str, TracedLevel]:
    """Levels by frame table: "disks", "paths", "hbas" and "targets"; thousands of look-ups, done once.

    An NVMe head is made up of its paths; a dm-multipath device is traced itself.
    """
    part = roles(disk_rows, graph)
    device_at = positions(disk_rows, traced_rows.keys)
    target_rows, target_of_row = _targets(disk_rows, graph)
    own = _turned(part.disk_at, len(disk_rows))
    heads = np.isin(part.lun_of_row, part.nvme_heads) & (part.lun_of_row >= 0)
    of_disk = np.where(heads, own[part.lun_of_row], own[:-1])
    of_path = _turned(part.path_at, len(disk_rows))[:-1]

    def level(kind: str, rows: Rows, place_of_row: Places, disk_at: Places | None = None) -> TracedLevel:
        # A path is one device, whose own busy time is exact; of the others few have several.
        group_keys = [group_key(kind, key) for key in rows.keys] if kind and len(group_rows) else []
        group_at = positions(group_rows, group_keys) if group_keys else np.full(len(rows), -1, np.intp)
        place = np.append(place_of_row, -1)[device_at]
        devices = np.bincount(place[place >= 0], minlength=len(rows))
        return TracedLevel(rows, place, group_at, devices, disk_at)

    return {
        "disks": level("lun", part.disks, of_disk, part.disk_at),
        "paths": level("", part.paths, of_path, part.path_at),
        "hbas": level("hba", part.ports, part.port_of_row),
        "targets": level("target", target_rows, target_of_row),
    }


def level_sums(traced: Traced, level: TracedLevel) -> LevelSums:
    """Add up the devices of each row."""
    place = level.place_of_device[traced.at]
    ours = np.flatnonzero(place >= 0)
    at, group = np.unique(place[ours], return_inverse=True)
    if len(at) == len(ours):
        sums, largest = _each(traced, ours, group)
    else:
        sums, largest = _together(traced, ours, group, len(at))
    several = level.devices[at] > 1
    busy_ns = sums["busy_ns"]
    if several.any():
        together = np.append(traced.group_busy_ns, np.nan)[level.group_at[at]]
        busy_ns = np.where(several, together, busy_ns)
        largest["in_driver_peak"] = np.where(several, np.nan, largest["in_driver_peak"])
    return LevelSums(at, sums, largest, busy_ns, _cells_of(traced, level, at))


_Sums = dict[str, Values]


def _each(traced: Traced, ours: Places, group: Places) -> tuple[_Sums, _Sums]:
    """Rows of one device each."""
    order = np.empty(len(ours), np.intp)
    order[group] = ours
    return {name: traced.values[name][order] for name in SUMMED}, {name: traced.values[name][order] for name in LARGEST}


def _together(traced: Traced, ours: Places, group: Places, count: int) -> tuple[_Sums, _Sums]:
    sums = {name: np.bincount(group, traced.values[name][ours], minlength=count).astype(np.float64) for name in SUMMED}
    return sums, {name: _largest(group, traced.values[name][ours], count) for name in LARGEST}


def _turned(at: Places, count: int) -> Places:
    """SysfsLocation in `at` of each of `count` rows, -1 for those that are not in it, and one -1 more at the end."""
    places = np.full(count + 1, -1, np.intp)
    places[at] = np.arange(len(at))
    return places


@lru_cache(maxsize=8)
def _targets(disk_rows: Rows, graph: Graph) -> tuple[Rows, Places]:
    carrying = {path.target for path in graph.paths if path.target}
    targets = [target for target in graph.targets if target.key in carrying]
    place_of_target = {target.key: place for place, target in enumerate(targets)}
    target_of_row = np.full(len(disk_rows), -1, np.intp)
    for path in graph.paths:
        if path.key in disk_rows.positions:
            target_of_row[disk_rows.positions[path.key]] = place_of_target.get(path.target, -1)
    return Rows(tuple(target.key for target in targets), tuple(target.name for target in targets)), target_of_row


def _largest(group: NDArray[np.intp], values: Values, count: int) -> Values:
    largest = np.zeros(count)
    with np.errstate(invalid="ignore"):
        np.maximum.at(largest, group, values)
    return largest


def _cells_of(traced: Traced, level: TracedLevel, at: Places) -> dict[str, RowCells]:
    cells = traced.cells
    if cells is None:
        return {}
    compact = np.full(len(level.rows) + 1, -1, np.int64)
    compact[at] = np.arange(len(at))
    row = compact[level.place_of_device[cells.row]]
    found = {}
    for part in ("queue", "service"):
        of_part = np.array([name.startswith(part) for name in TRACE_SERIES])
        kept = np.flatnonzero((row >= 0) & of_part[cells.series])
        found[part] = RowCells(cells.scale, row[kept].astype(np.uint32), cells.bucket[kept], cells.count[kept])
    return found
