"""The storage that disks are on: array, controller, HBA port, or the bus of disks in the host."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from collectors.graph import Graph, Path, ports_of
from engine.text import safe_text

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
