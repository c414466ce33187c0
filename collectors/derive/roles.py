"""Roles of the rows of the disk table: whole disks, those to show, paths and their HBA ports."""

from __future__ import annotations

import functools
from functools import lru_cache

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.graph import Graph
from collectors.model import FrameTable, Rows, Topology
from engine.text import safe_text

_STACKED_KINDS = {"loop", "dm", "md"}


def is_base(key: str, topology: Topology) -> bool:
    """Whether a device is not built on another one."""
    device = topology.devices.get(key)
    return device is None or not (device.slaves or device.kind in _STACKED_KINDS)


@functools.lru_cache(maxsize=1)
def present_disks(disks: FrameTable, topology: Topology) -> FrameTable:
    """Leave out devices of size 0, such as detached loop devices; the last result is cached for its frame.

    Those that never did any I/O are not in the table: its reader leaves them out.
    """
    chosen = _chosen(disks.rows, topology)
    if chosen is None:
        return disks
    rows, kept = chosen
    return disks.taken(kept, rows)


@functools.lru_cache(maxsize=4)
def _chosen(rows: Rows, topology: Topology) -> tuple[Rows, NDArray[np.intp]] | None:
    """Rows to keep and their positions; None if all are kept. The same object until something changes."""
    kept = [position for position, key in enumerate(rows.keys) if _has_size(key, topology)]
    if len(kept) == len(rows):
        return None
    return rows.taken(kept), np.array(kept, np.intp)


def _has_size(key: str, topology: Topology) -> bool:
    device = topology.devices.get(key)
    return device is None or device.size_bytes != 0


Positions = NDArray[np.intp]


class Roles(Struct, frozen=True, eq=False):
    """Positions in the disk table of the devices of the graph; the same object until rows or graph change."""

    disks: Rows
    """Whole disks: all rows but those that are paths of another one."""
    disk_at: Positions
    paths: Rows
    """All paths, a disk that is its own only path among them."""
    path_at: Positions
    ports: Rows
    """Ports that carry a path."""
    port_limits: NDArray[np.float64]
    """Commands each port admits, NaN where unknown."""
    lun_of_row: Positions
    """Row of the LUN of each row that is a path of another one, -1 for all others."""
    port_of_row: Positions
    """Index in `ports` of the port of each row that is a path, -1 for all others."""
    targets: Rows
    """Target ports that a path leads to."""
    target_of_row: Positions
    """Index in `targets` of the target port of each row that is a path, -1 for all others."""
    path_limits: NDArray[np.float64]
    """Outstanding commands each path admits, NaN where unknown."""
    nvme_heads: Positions
    """Rows of NVMe multipath heads that have paths in the table: some kernels do not count the I/O of heads."""


@lru_cache(maxsize=8)
def roles(rows: Rows, graph: Graph) -> Roles:
    """Classify the rows; thousands of lookups, so cached by the pair of objects."""
    at = rows.positions
    paths = [path for path in graph.paths if path.key in at]
    lun_of_row = np.full(len(rows), -1, np.intp)
    for path in paths:
        if path.lun != path.key:
            lun_of_row[at[path.key]] = at.get(path.lun, -1)
    carrying = {path.port for path in paths if path.port}
    ports = [port for port in graph.ports if port.key in carrying]
    position_of_port = {port.key: position for position, port in enumerate(ports)}
    path_at = np.array([at[path.key] for path in paths], np.intp)
    port_of_row = np.full(len(rows), -1, np.intp)
    port_of_row[path_at] = [position_of_port.get(path.port, -1) for path in paths]
    leading = {path.target for path in paths if path.target}
    targets = [target for target in graph.targets if target.key in leading]
    position_of_target = {target.key: position for position, target in enumerate(targets)}
    target_of_row = np.full(len(rows), -1, np.intp)
    target_of_row[path_at] = [position_of_target.get(path.target, -1) for path in paths]
    disk_at = np.flatnonzero(lun_of_row < 0)
    heads = {at[lun.key] for lun in graph.luns if lun.multipath == "nvme" and lun.key in at}
    return Roles(
        disks=_taken(rows, disk_at),
        disk_at=disk_at,
        paths=_taken(rows, path_at),
        path_at=path_at,
        ports=Rows(
            tuple(port.key for port in ports), tuple(safe_text("+".join(port.members) or port.name) for port in ports)
        ),
        port_limits=_limits([port.queue_limit for port in ports]),
        lun_of_row=lun_of_row,
        port_of_row=port_of_row,
        targets=Rows(
            tuple(target.key for target in targets), tuple(safe_text(target.label or target.name) for target in targets)
        ),
        target_of_row=target_of_row,
        path_limits=_limits([path.queue_limit for path in paths]),
        nvme_heads=np.array(sorted(heads.intersection(lun_of_row.tolist())), np.intp),
    )


@lru_cache(maxsize=4)
def host_keys(topology: Topology) -> tuple[str, ...]:
    """Keys of the devices whose I/Os are those of the host, each once: all paths, and disks without any.

    An NVMe head is counted by its paths: kernels differ in whether they count I/O of the head.
    """
    graph = topology.graph
    paths = (path.key for path in graph.paths)
    others = (lun.key for lun in graph.luns if not lun.multipath and is_base(lun.key, topology))
    return tuple(dict.fromkeys((*paths, *others)))


HOST_ROWS = Rows(("host",), ("all",))
"""The one row of what the whole host does."""


@lru_cache(maxsize=4)
def host_of_row(rows: Rows, topology: Topology) -> Positions:
    """0 for rows whose I/Os are those of the host, each once, -1 for all others."""
    known = frozenset(host_keys(topology))
    return np.array([0 if key in known else -1 for key in rows.keys], np.intp)


def _taken(rows: Rows, at: Positions) -> Rows:
    if len(at) == len(rows) and (at == np.arange(len(rows))).all():
        return rows
    return rows.taken(at.tolist())


def _limits(limits: list[int | None]) -> NDArray[np.float64]:
    return np.array([np.nan if limit is None else limit for limit in limits], np.float64)
