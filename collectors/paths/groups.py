"""Groups of paths with a common LUN, HBA port, target port or policy, and the storage that disks are on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import lru_cache

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.graph import Graph, Lun, Path, Port, TargetPort, ports_of
from collectors.kernel.device_ids import label_of
from collectors.model import Rows, Topology
from engine.text import safe_text


class GroupBy(StrEnum):
    """Common property of the paths of a group."""

    LUN = "LUN"
    PORT = "HBA port"
    TARGET = "target port"
    CONTROLLER = "controller"
    WAY = "way"
    POLICY = "policy"


class PathGroups(Struct, frozen=True, eq=False):
    """Groups of the rows of a "paths" table; the same object until rows or topology change."""

    by: GroupBy
    rows: Rows
    """The groups: keys `LUN:KEY` and the like, and names that are safe to print."""
    of: tuple[str, ...]
    """Key of the LUN, port or target, or the policy, of each group."""
    group_of_row: NDArray[np.intp]
    """Group of each path, -1 for a disk that is its own only path if grouped by LUN."""


_ARROW = " -> "
NO_TARGET, NO_PORT, NO_CONTROLLER = "no target port", "no HBA port", "controller not known"


@lru_cache(maxsize=8)
def path_groups(rows: Rows, topology: Topology, by: GroupBy) -> PathGroups:
    """Group the paths of a table, groups in order of first appearance."""
    graph = topology.graph
    policies = {lun.key: policy_name(lun) for lun in graph.luns}
    of_group: dict[str, int] = {}
    group_of_row = np.full(len(rows), -1, np.intp)
    for path in graph.paths:
        row = rows.positions.get(path.key)
        if row is not None and not (by is GroupBy.LUN and path.lun == path.key):
            shared = _SHARED[by](path) if by in _SHARED else policies.get(path.lun, "")
            group_of_row[row] = of_group.setdefault(shared, len(of_group))
    names = tuple(_names(topology, by, of_group))
    return PathGroups(by, Rows(tuple(f"{by}:{key}" for key in of_group), names), tuple(of_group), group_of_row)


_SHARED: Mapping[GroupBy, Callable[[Path], str]] = {
    GroupBy.LUN: lambda path: path.lun,
    GroupBy.PORT: lambda path: path.port,
    GroupBy.TARGET: lambda path: path.target,
    GroupBy.CONTROLLER: lambda path: path.controller or path.target,
    GroupBy.WAY: lambda path: way_key(path.port, path.target),
}


def way_key(port: str, target: str) -> str:
    """Make the key of the connection between an HBA port and a target port."""
    return f"{port}{_ARROW}{target}"


def policy_name(lun: Lun) -> str:
    """Describe how the I/Os of a LUN are spread over its paths."""
    if not lun.multipath:
        return "no multipath"
    return f"{lun.multipath} {safe_text(lun.policy) or 'policy not known'}"


def port_name(port: Port) -> str:
    """Name all members of a port and its alias or transport: host0+nvme0 fc."""
    return safe_text(f"{'+'.join(port.members) or port.name} {port.label or port.transport}")


def target_name(target: TargetPort) -> str:
    """Name a target port by its alias, or by its address."""
    return safe_text(target.label or target.name)


def lun_name(key: str, topology: Topology) -> str:
    """Name a LUN by its kernel name and its alias."""
    device = topology.devices.get(key)
    if device is None:
        return safe_text(key)
    called = label_of(device, device.name)
    return safe_text(device.name if called == device.name else f"{device.name} {called}")


def _names(topology: Topology, by: GroupBy, keys: Iterable[str]) -> Iterator[str]:
    if by is GroupBy.LUN:
        yield from (lun_name(key, topology) for key in keys)
    elif by is GroupBy.POLICY:
        yield from keys
    else:
        ports = {port.key: port_name(port) for port in topology.graph.ports}
        targets = {target.key: target_name(target) for target in topology.graph.targets}
        if by is GroupBy.PORT:
            yield from (ports.get(key, NO_PORT) for key in keys)
        elif by is GroupBy.TARGET:
            yield from (targets.get(key, NO_TARGET) for key in keys)
        elif by is GroupBy.CONTROLLER:
            yield from (targets.get(key) or safe_text(key) or NO_CONTROLLER for key in keys)
        else:
            for port, _, target in (key.partition(_ARROW) for key in keys):
                yield f"{ports.get(port, NO_PORT)}{_ARROW}{targets.get(target, NO_TARGET)}"


OTHER = "other devices"
"""Group of devices without a path: loop devices, arrays and volumes of the host."""
_OWN_PORT_EACH = {
    "nvme-pcie": "NVMe disks in this host",
    "virtio": "virtio disks",
    "ata": "ATA disks",
    "usb": "USB disks",
}
"""Transports with a port for each disk, which would be a group each."""


@lru_cache(maxsize=2)
def storage_of_disks(graph: Graph) -> Mapping[str, str]:
    """Name the storage of each LUN by its key, safe to print.

    That is the array of its target ports; where that is not known the controller, else the HBA port or the bus.
    """
    arrays = {target.key: target.array for target in graph.targets}
    return {lun.key: _storage(graph, [graph.paths[at] for at in graph.paths_of[lun.key]], arrays) for lun in graph.luns}


def _storage(graph: Graph, paths: list[Path], arrays: Mapping[str, str]) -> str:
    ports = ports_of(graph)
    of_arrays = {arrays.get(path.target, "") for path in paths} - {""}
    if of_arrays and not all(_is_own_port(ports[path.port].transport) for path in paths if path.port in ports):
        return f"array {_joined(of_arrays)}"
    if controllers := {path.controller for path in paths} - {""}:
        return f"controller {_joined(controllers)}"
    used = [ports[path.port] for path in paths if path.port in ports]
    if buses := {_OWN_PORT_EACH[port.transport] for port in used if _is_own_port(port.transport)}:
        return _joined(buses)
    return f"HBA port {_joined({port.label or port.name for port in used})}" if used else OTHER


def _is_own_port(transport: str) -> bool:
    return transport in _OWN_PORT_EACH


def _joined(names: set[str]) -> str:
    return safe_text(" + ".join(sorted(names)))
