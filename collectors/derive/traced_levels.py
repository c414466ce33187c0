"""Which disk, path, HBA port or target port each traced device belongs to, and what these did together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from collectors.derive.growth import Values, positions
from collectors.derive.roles import Places, roles
from collectors.derive.traced import LARGEST, SUMMED, Traced
from collectors.model import Rows
from collectors.percentiles import RowCells
from collectors.schemas import TRACE_SERIES
from collectors.topology.graph import Graph


def group_key(kind: str, key: str) -> str:
    """Key in TRACE_GROUP of a thing of the graph; kind is "lun", "hba" or "target"."""
    return f"{kind} {key}"


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """How traced devices make up the rows of a frame table."""

    rows: Rows
    place_of_device: Places
    """Row of each traced device, -1 for those that are in none."""
    group_at: Places
    """Row in TRACE_GROUP of each row of this level, -1 where the kernel side has no such group."""
    disk_at: Places | None = None
    """Row in the disk table of each row of this level; None where the rows are no devices."""


@dataclass(frozen=True, slots=True, eq=False)
class LevelSums:
    """What the rows of a level did; arrays of shape (len(rows),), NaN where one of the devices is not known.

    The most I/Os in the driver at once are known of single devices only.
    """

    sums: Mapping[str, Values]
    largest: Mapping[str, Values]
    busy_ns: Values
    """Time with any device of the row busy; NaN where several devices are and no group tells of them together."""
    cells: Mapping[str, RowCells]
    """Histograms of each series of TRACE_SERIES; empty where none were taken."""


@lru_cache(maxsize=8)
def levels(traced_rows: Rows, group_rows: Rows, disk_rows: Rows, graph: Graph) -> Mapping[str, Level]:
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

    def level(kind: str, rows: Rows, place_of_row: Places, disk_at: Places | None = None) -> Level:
        group_keys = [group_key(kind, key) for key in rows.keys]
        return Level(rows, np.append(place_of_row, -1)[device_at], positions(group_rows, group_keys), disk_at)

    return {
        "disks": level("lun", part.disks, of_disk, part.disk_at),
        "paths": level("", part.paths, of_path, part.path_at),
        "hbas": level("hba", part.ports, part.port_of_row),
        "targets": level("target", target_rows, target_of_row),
    }


def level_sums(traced: Traced, level: Level) -> LevelSums:
    """Add up the devices of each row."""
    count, place = len(level.rows), level.place_of_device[traced.at]
    ours = np.flatnonzero(place >= 0)
    group = place[ours]
    sums = {name: np.bincount(group, traced.values[name][ours], minlength=count).astype(np.float64) for name in SUMMED}
    largest = {name: _largest(group, traced.values[name][ours], count) for name in LARGEST}
    members = np.bincount(level.place_of_device[level.place_of_device >= 0], minlength=count)
    together = np.append(traced.group_busy_ns, np.nan)[level.group_at]
    busy_ns = np.where(members > 1, together, sums["busy_ns"])
    largest["in_driver_peak"][members > 1] = np.nan
    return LevelSums(sums, largest, busy_ns, _cells_of(traced, level))


def _turned(at: Places, count: int) -> Places:
    """Place in `at` of each of `count` rows, -1 for those that are not in it, and one -1 more at the end."""
    places = np.full(count + 1, -1, np.intp)
    places[at] = np.arange(len(at))
    return places


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


def _cells_of(traced: Traced, level: Level) -> dict[str, RowCells]:
    cells = traced.cells
    if cells is None:
        return {}
    place = level.place_of_device[cells.row]
    found = {}
    for number, name in enumerate(TRACE_SERIES):
        kept = np.flatnonzero((place >= 0) & (cells.series == number))
        row = place[kept].astype(np.uint32)
        found[name] = RowCells(cells.scale, row, cells.bucket[kept], cells.count[kept])
    return found
