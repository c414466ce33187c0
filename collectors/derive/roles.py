"""Which rows of the disk table are whole disks, which are paths, and which HBA port carries each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from collectors.graph import Graph
from collectors.model import Rows
from engine.text import safe_text

Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Roles:
    """Places in the disk table of everything the graph names; one object as long as rows and graph stay."""

    disks: Rows
    """Whole disks: all rows but those that are paths of another one."""
    disk_at: Places
    paths: Rows
    """All paths, a disk that is its own only path among them."""
    path_at: Places
    ports: Rows
    """Ports that carry a path."""
    port_limits: NDArray[np.float64]
    """Commands each port admits, NaN where that is not known."""
    lun_of_row: Places
    """Row of the LUN of each row that is a path of another one, -1 for all others."""
    port_of_row: Places
    """SysfsLocation in `ports` of the port of each row that is a path, -1 for all others."""
    path_limits: NDArray[np.float64]
    """Outstanding commands each path admits, NaN where that is not known."""
    nvme_heads: Places
    """Rows of NVMe multipath heads that have paths in the table: some kernels do not count on them."""


@lru_cache(maxsize=8)
def roles(rows: Rows, graph: Graph) -> Roles:
    """Sort the rows; thousands of look-ups, done once for each pair of objects."""
    at = rows.positions
    paths = [path for path in graph.paths if path.key in at]
    lun_of_row = np.full(len(rows), -1, np.intp)
    for path in paths:
        if path.lun != path.key:
            lun_of_row[at[path.key]] = at.get(path.lun, -1)
    carrying = {path.port for path in paths if path.port}
    ports = [port for port in graph.ports if port.key in carrying]
    place_of_port = {port.key: place for place, port in enumerate(ports)}
    path_at = np.array([at[path.key] for path in paths], np.intp)
    port_of_row = np.full(len(rows), -1, np.intp)
    port_of_row[path_at] = [place_of_port.get(path.port, -1) for path in paths]
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
        path_limits=_limits([path.queue_limit for path in paths]),
        nvme_heads=np.array(sorted(heads.intersection(lun_of_row.tolist())), np.intp),
    )


def _taken(rows: Rows, at: Places) -> Rows:
    if len(at) == len(rows) and (at == np.arange(len(rows))).all():
        return rows
    places = at.tolist()
    return Rows(tuple(rows.keys[place] for place in places), tuple(rows.names[place] for place in places))


def _limits(limits: list[int | None]) -> NDArray[np.float64]:
    return np.array([np.nan if limit is None else limit for limit in limits], np.float64)
